from __future__ import annotations

import time

import pytest

from spotladder.output.redact import redacted, secret_values


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=[redacted]"),
        ("key AKIAIOSFODNN7EXAMPLE.", "key [redacted]."),
        ('{"api_key": "abcdef123456", "step": 3}', '{"api_key": [redacted], "step": 3}'),
        ("postgres://me:s3cr3t@db/x", "postgres://me:[redacted]@db/x"),
        ("Authorization: Bearer abc.def.ghi", "Authorization: Bearer [redacted]"),
        ("token hf_abcdefghijklmnopqrstuvwxyz", "token [redacted]"),
        ("https://b.s3.amazonaws.com/x?X-Amz-Signature=abc123&a=1", "https://b.s3.amazonaws.com/x?X-Amz-Signature=[redacted]&a=1"),
        ("key sk-proj-abc123def456ghi789jkl", "key [redacted]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nnext", "[redacted]\nnext"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc", "[redacted]"),
        ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "[redacted]"),
        ("wandb: 0123456789abcdef0123456789abcdef01234567", "wandb: [redacted]"),
        ("glpat-abcdefghij0123456789", "[redacted]"),
        ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "[redacted]"),
        ("session IQoJb3JpZ2luX2VjEJ" + "aB3/" * 20 + "==", "session [redacted]"),
        ("AccountName=a;" + "aB3/" * 21 + "aB==", "AccountName=a;[redacted]"),
        ("password=[redacted]", "password=[redacted]"),
        # Ordinary training output is unchanged.
        ("tokens: 4096, loss 0.31", "tokens: 4096, loss 0.31"),
        ("num_tokens=123456789", "num_tokens=123456789"),
        ("secret: no", "secret: no"),
        ("sk_learn_pipeline_of_the_classifier", "sk_learn_pipeline_of_the_classifier"),
        ("KeyError: 'rate'", "KeyError: 'rate'"),
        ("/home/ray/anaconda3/lib/python3.11/torch/nn", "/home/ray/anaconda3/lib/python3.11/torch/nn"),
        ("sha256:" + "0123456789abcdef" * 4, "sha256:" + "0123456789abcdef" * 4),
        ("s3://bucket/prefix/step=12", "s3://bucket/prefix/step=12"),
        ("File \"train.py\", line 3, in tokenize", "File \"train.py\", line 3, in tokenize"),
    ],
)  # fmt: skip
def test_secrets_are_recognized_by_their_form(text: str, left: str) -> None:
    assert redacted(text) == left


def test_known_values() -> None:
    assert redacted("a=hunter22 hunter22x ab", ["hunter22", "ab", "hunter22x"]) == "a=[redacted] [redacted] ab"


def test_the_secret_values_of_an_environment() -> None:
    given = {"AWS_SECRET_ACCESS_KEY": "abc/def+ghi", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": "http://minio:9000"}
    assert secret_values(given) == ["abc/def+ghi"]


def test_a_long_line_is_fast() -> None:
    line = "a.b-c_" * 10_000
    began = time.process_time()
    assert redacted(line) == line
    assert time.process_time() - began < 2.0
