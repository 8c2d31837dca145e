"""The simulator: capacity traces, worlds that replay them, and the same decision core that runs in production."""
