# An NGC image with envcheck in it, written by envcheck 0.2.0.
#   docker build -t tensorflow-envcheck DIRECTORY     (a builder with cache mounts)
#   docker run --rm --gpus all tensorflow-envcheck envcheck doctor --target /usr/bin/python3
# Its entrypoint, its command and its working directory stay as they are.

# Any of NVIDIA's, of any Python: a tag moves, a digest does not.
#   docker build --build-arg BASE=NAME@sha256:DIGEST …
ARG BASE=nvcr.io/nvidia/tensorflow:25.02-tf2-py3@sha256:c83b37d26f19ab00d8a13cf974edd079c3d099918ec3110c304a989d6e2f75d5

# envcheck needs Python 3.10 or newer, whatever BASE has; this one runs on glibc 2.17 or newer.
FROM ${BASE} AS python
USER root
ARG PYTHON_URL=https://github.com/astral-sh/python-build-standalone/releases/download/20260807/cpython-3.12.13%2B20260807-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz
ARG PYTHON_SHA256=506191be3ee7bd190a8834dcdc1b3bc70aab50608deccc711935aa007239cabd
ADD ${PYTHON_URL} /tmp/python.tar.gz
RUN echo "$PYTHON_SHA256  /tmp/python.tar.gz" | sha256sum -c - \
 && mkdir -p /opt && tar -xzf /tmp/python.tar.gz -C /opt \
 && /opt/python/bin/python3 -c 'import ssl, sys; assert sys.version_info[:2] == (3, 12), sys.version'

FROM ${BASE}
ARG BASE
USER root

# The public index or a mirror of it; empty: pip's own. An address with a password in it stays in
# the image's history: use one without. PIP_CERT: a file with the mirror's authorities, in BASE or
# mounted while building.
ARG INDEX_URL=
ARG PIP_CERT=

# envcheck itself, in an environment of its own: `envcheck doctor`.
COPY --from=python /opt/python /opt/python
COPY envcheck-requirements.txt envcheck-itself.txt envcheck_gpu-*.whl /opt/lock/
RUN --mount=type=cache,target=/var/cache/pip \
    /opt/python/bin/python3 -m venv /opt/envcheck \
 && PIP_CONSTRAINT= /opt/envcheck/bin/python -m pip install --no-deps --require-hashes \
      --cache-dir /var/cache/pip --only-binary=:all: \
      ${INDEX_URL:+--index-url "$INDEX_URL"} -r /opt/lock/envcheck-requirements.txt \
 && PIP_CONSTRAINT= /opt/envcheck/bin/python -m pip install --no-deps --require-hashes \
      --cache-dir /var/cache/pip --only-binary=:all: \
      --no-index --find-links /opt/lock -r /opt/lock/envcheck-itself.txt \
 && /opt/envcheck/bin/envcheck collector --output /opt/envcheck/envcheck-collector.pyz \
 && ln -s /opt/envcheck/bin/envcheck /usr/local/bin/envcheck

LABEL org.opencontainers.image.base.name="$BASE" \
      envcheck.version="0.2.0" \
      envcheck.lock="sha256:46e90a56c0c8f4ad783a4e4f630be86e702104b7a0261ae8264483865e36e142"
# Unhealthy when NVML has lost the GPUs that it was given. In docker's format only: podman build --format docker
HEALTHCHECK --interval=60s --timeout=20s --start-period=10s --retries=2 \
  CMD ["/opt/envcheck/bin/python", "-I", "/opt/envcheck/envcheck-collector.pyz", "--health"]
RUN useradd --create-home --uid 10001 envcheck
USER 10001
