"""The bring-up of a cluster, hop by hop: what in its stack and its releases allows each hop, or that nothing does."""
