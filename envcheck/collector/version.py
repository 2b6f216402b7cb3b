"""envcheck's version: it stands here because the collector also travels alone."""

VERSION = "0.3.0"
