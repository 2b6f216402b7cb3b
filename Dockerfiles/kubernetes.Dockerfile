# envcheck for nodes of Kubernetes: what the chart in kubernetes/envcheck starts.
#   pip wheel --no-deps --wheel-dir Dockerfiles/kubernetes .
#   docker build -f Dockerfiles/kubernetes.Dockerfile -t REGISTRY/envcheck:0.3.0 Dockerfiles/kubernetes
# The driver's libraries come from the node, so the base must have glibc (no Alpine). The digest was seen in FROM
# lines of public repositories that do not know of each other; it was not pulled here.
ARG BASE=docker.io/library/python:3.12-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254
FROM ${BASE} AS build
COPY envcheck-requirements.txt envcheck_gpu-*.whl /opt/lock/
RUN python3 -m venv --without-pip /opt/envcheck \
 && pip="python3 -m pip --python /opt/envcheck/bin/python install --no-cache-dir --no-deps" \
 && $pip --require-hashes --only-binary :all: -r /opt/lock/envcheck-requirements.txt \
 && $pip /opt/lock/envcheck_gpu-*.whl

FROM ${BASE}
COPY --from=build /opt/envcheck /opt/envcheck
ENV PATH=/opt/envcheck/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
RUN useradd --create-home --uid 10001 envcheck
USER 10001
WORKDIR /home/envcheck
ENTRYPOINT ["envcheck"]
CMD ["fleet", "kubernetes-node", "--once"]
