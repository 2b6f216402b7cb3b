# NVIDIA's image with envcheck in it, in an environment of its own.
#   pip wheel --no-deps --wheel-dir Dockerfiles/ngc .
#   docker build -f Dockerfiles/ngc.Dockerfile -t tensorflow-envcheck Dockerfiles/ngc
#   docker run --rm --gpus all tensorflow-envcheck envcheck doctor --target /usr/bin/python3
# Any of NVIDIA's images with Python 3.12; its entrypoint and command stay, user and working directory are new.
ARG BASE=nvcr.io/nvidia/tensorflow:25.02-tf2-py3@sha256:c83b37d26f19ab00d8a13cf974edd079c3d099918ec3110c304a989d6e2f75d5
FROM ${BASE}
USER root
COPY envcheck-requirements.txt envcheck_gpu-*.whl /opt/lock/
RUN python3 -m venv --without-pip /opt/envcheck \
 && pip="python3 -m pip --python /opt/envcheck/bin/python install --no-cache-dir --no-deps" \
 && $pip --require-hashes --only-binary :all: -r /opt/lock/envcheck-requirements.txt \
 && $pip /opt/lock/envcheck_gpu-*.whl \
 && rm /opt/lock/envcheck_gpu-*.whl \
 && ln -s /opt/envcheck/bin/envcheck /usr/local/bin/envcheck \
 && useradd --create-home --uid 10001 envcheck
USER 10001
WORKDIR /home/envcheck
