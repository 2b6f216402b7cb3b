# Written by envcheck 0.3.0: nvidia-tf1 23.03.
#   docker build -t nvidia-tf1:23.03 DIRECTORY     (BuildKit, or podman 4 and newer)
#   docker buildx build --provenance=mode=max --sbom=true --push -t REGISTRY/nvidia-tf1:23.03 DIRECTORY
# Every package is one file that its sha256 names, and comes from one index.
# The host needs NVIDIA's container toolkit and driver 525.60.13 or newer, for CUDA 12.1.0.
#   docker run --rm --gpus all nvidia-tf1:23.03 python -c 'import tensorflow'

# A tag moves, a digest does not. For another BASE give its digest too: it becomes a label.
#   --build-arg BASE=NAME@sha256:DIGEST --build-arg BASE_DIGEST=sha256:DIGEST
ARG BASE=docker.io/library/ubuntu:24.04@sha256:786a8b558f7be160c6c8c4a54f9a57274f3b4fb1491cf65146521ae77ff1dc54
FROM ${BASE}
ARG BASE
ARG BASE_DIGEST=sha256:786a8b558f7be160c6c8c4a54f9a57274f3b4fb1491cf65146521ae77ff1dc54
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
ARG NVIDIA_INDEX_URL=https://pypi.ngc.nvidia.com

# Every package and its sha256; the environment. A Python that BASE lacks is uv's.
COPY requirements*.txt /opt/lock/
RUN --mount=type=bind,source=envcheck-uv,target=/usr/bin/uv --mount=type=cache,target=/var/cache/uv \
    uv venv --python 3.8 /opt/venv
RUN --mount=type=bind,source=envcheck-uv,target=/usr/bin/uv --mount=type=cache,target=/var/cache/uv \
    uv pip install --python /opt/venv/bin/python --no-deps --require-hashes \
      --only-binary :all: -r /opt/lock/requirements.txt
RUN --mount=type=bind,source=envcheck-uv,target=/usr/bin/uv --mount=type=cache,target=/var/cache/uv \
    uv pip install --python /opt/venv/bin/python --no-deps --require-hashes \
      --only-binary :all: --default-index "$NVIDIA_INDEX_URL" -r /opt/lock/requirements-nvidia.txt

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

# As activation would set it, and nothing else.
ENV VIRTUAL_ENV="/opt/venv"
ENV PATH=/opt/venv/bin:$PATH
# Where this image's own sources are, say with the build:
#   --label org.opencontainers.image.source=https://… --label org.opencontainers.image.revision=COMMIT
# sha256:… of the lock that the lists are of.
ARG LOCK=
LABEL org.opencontainers.image.title="nvidia-tf1" \
      org.opencontainers.image.version="23.03" \
      org.opencontainers.image.description="NVIDIA's TensorFlow 1.15, with Horovod" \
      envcheck.stack="nvidia-tf1" \
      envcheck.release="23.03" \
      envcheck.provided="nvidia-pyindex" \
      org.opencontainers.image.base.name="$BASE" \
      org.opencontainers.image.base.digest="$BASE_DIGEST" \
      envcheck.version="0.3.0" \
      envcheck.lock="$LOCK"
USER 10001
WORKDIR /home/envcheck
CMD ["python"]
