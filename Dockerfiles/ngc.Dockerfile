# Written by envcheck 0.3.0: an NGC image with envcheck in it.
#   docker build -t tensorflow-envcheck DIRECTORY     (BuildKit, or podman 4 and newer)
#   docker buildx build --provenance=mode=max --sbom=true --push -t REGISTRY/tensorflow-envcheck DIRECTORY
#   docker run --rm --gpus all tensorflow-envcheck envcheck doctor --target /usr/bin/python3
# Any of NVIDIA's images; its entrypoint and command stay, user and working directory are new.

# A tag moves, a digest does not. For another BASE give its digest too: it becomes a label.
#   --build-arg BASE=NAME@sha256:DIGEST --build-arg BASE_DIGEST=sha256:DIGEST
ARG BASE=nvcr.io/nvidia/tensorflow:25.02-tf2-py3@sha256:c83b37d26f19ab00d8a13cf974edd079c3d099918ec3110c304a989d6e2f75d5
FROM ${BASE}
ARG BASE
ARG BASE_DIGEST=sha256:c83b37d26f19ab00d8a13cf974edd079c3d099918ec3110c304a989d6e2f75d5
USER root
RUN case "$BASE" in *"$BASE_DIGEST") ;; *) echo "BASE_DIGEST is not the digest in BASE" >&2; exit 1;; esac

# uv's own settings, for the build alone. A mirror of the public index (without a password: it stays in the
# image's history), one of python-build-standalone, and a file with their authorities, mounted while building.
ARG UV_DEFAULT_INDEX=
ARG UV_PYTHON_INSTALL_MIRROR=
ARG SSL_CERT_FILE=
ARG UV_PYTHON_INSTALL_DIR=/opt/python
ARG UV_CACHE_DIR=/var/cache/uv
ARG UV_LINK_MODE=copy
ARG UV_COMPILE_BYTECODE=1
ARG UV_NO_CONFIG=1

# envcheck itself, in an environment of its own: `envcheck doctor`.
COPY envcheck-*.txt envcheck_gpu-*.whl /opt/lock/
RUN --mount=type=bind,source=envcheck-uv,target=/usr/bin/uv --mount=type=cache,target=/var/cache/uv \
    uv venv --python 3.12 /opt/envcheck \
 && uv pip install --python /opt/envcheck/bin/python --no-deps --require-hashes \
      --only-binary :all: -r /opt/lock/envcheck-requirements.txt \
 && uv pip install --python /opt/envcheck/bin/python --no-deps --require-hashes \
      --no-index --find-links /opt/lock -r /opt/lock/envcheck-itself.txt \
 && rm /opt/lock/envcheck_gpu-*.whl
RUN ln -s /opt/envcheck/bin/envcheck /usr/local/bin/envcheck \
 && /opt/envcheck/bin/envcheck collector --output /opt/envcheck/envcheck-collector.pyz \
 && useradd --create-home --uid 10001 envcheck

# Where this image's own sources are, say with the build:
#   --label org.opencontainers.image.source=https://… --label org.opencontainers.image.revision=COMMIT
# sha256:… of the lock that the lists are of.
ARG LOCK=
LABEL org.opencontainers.image.base.name="$BASE" \
      org.opencontainers.image.base.digest="$BASE_DIGEST" \
      envcheck.version="0.3.0" \
      envcheck.lock="$LOCK"
# Unhealthy when NVML has lost the GPUs that it was given. In docker's format only: podman build --format docker
HEALTHCHECK --interval=60s --timeout=20s --start-period=10s --retries=2 \
  CMD ["/opt/envcheck/bin/python", "-I", "/opt/envcheck/envcheck-collector.pyz", "--health"]
USER 10001
WORKDIR /home/envcheck
