# An image of a bundle, verified by the doctor while it is built. DIRECTORY is what `envcheck bundle` wrote.
#   docker build -f Dockerfiles/bundle.Dockerfile -t tensorflow DIRECTORY     (BuildKit, or podman 4 and newer)
#   docker run --rm --gpus all tensorflow python -c 'import tensorflow'
# A tag moves, a digest does not. For another BASE give its digest too: it becomes a label.
#   --build-arg BASE=NAME@sha256:DIGEST --build-arg BASE_DIGEST=sha256:DIGEST
ARG BASE=docker.io/library/ubuntu:24.04@sha256:786a8b558f7be160c6c8c4a54f9a57274f3b4fb1491cf65146521ae77ff1dc54
FROM ${BASE}
ARG BASE
ARG BASE_DIGEST=sha256:786a8b558f7be160c6c8c4a54f9a57274f3b4fb1491cf65146521ae77ff1dc54
USER root
RUN case "$BASE" in *"$BASE_DIGEST") ;; *) echo "BASE_DIGEST is not the digest in BASE" >&2; exit 1;; esac

# What BASE has to have beside the bundle, by apt, the only step that needs a network: a Python, if the bundle has none
# that envcheck runs with, and the compilers of a stack that is built.
ARG PACKAGES="python3"
RUN [ -z "$PACKAGES" ] || { apt-get update \
 && apt-get install -y --no-install-recommends $PACKAGES \
 && rm -rf /var/lib/apt/lists/*; }

# envcheck in an environment of its own, and the bundle's environment, which envcheck verifies.
ENV UV_PYTHON_INSTALL_DIR=/opt/python
RUN --mount=type=bind,target=/run/bundle \
    sh /run/bundle/setup.sh /opt/envcheck \
 && XDG_CACHE_HOME=/tmp/cache /opt/envcheck/bin/envcheck install --mode wheel --offline /run/bundle \
      --path /opt/stack --allow-no-gpu --yes \
 && rm -rf /tmp/cache \
 && ln -s /opt/envcheck/bin/envcheck /usr/local/bin/envcheck \
 && echo 'envcheck:x:10001:10001::/home/envcheck:/bin/sh' >> /etc/passwd \
 && mkdir -p /home/envcheck && chown 10001:10001 /home/envcheck

ENV VIRTUAL_ENV=/opt/stack/current PATH=/opt/stack/current/bin:$PATH
LABEL org.opencontainers.image.base.name="$BASE" \
      org.opencontainers.image.base.digest="$BASE_DIGEST"
USER 10001:10001
WORKDIR /home/envcheck
# With the variables that activation sets.
ENTRYPOINT ["envcheck", "run", "--path", "/opt/stack", "--"]
CMD ["python"]
