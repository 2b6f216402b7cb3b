"""Python interpreters: found, asked, or to be had from uv."""
