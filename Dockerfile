# syntax=docker/dockerfile:1

# docker build --build-arg VERSION=v1.0.0 --build-arg COMMIT=$(git rev-parse HEAD) -t delaybroker .
# docker run -p 127.0.0.1:4222:4222 -p 127.0.0.1:8422:8422 -v delay-data:/data delaybroker
# docker run -p 8422:8422 -e NATS_URL=nats://nats:4222 delaybroker

# Only the minor version is given, so that each build has the latest security fixes. The compiler runs on the builder's
# own platform and compiles for the target's: under emulation it would take minutes.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY . .
ARG TARGETOS TARGETARCH
ARG VERSION COMMIT
# The addresses and the directory are linked in, and not set by ENV: the program would take ENV for a user's settings,
# and would refuse NATS_URL beside the settings of the embedded server. The addresses are not loopback addresses, because
# neither -p nor a probe reaches a loopback address in a container.
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags="-s -w \
      -X main.linkedVersion=$VERSION \
      -X main.linkedRevision=$COMMIT \
      -X delaybroker/cmd/delaybroker/settings.defaultHTTPAddr=:8422 \
      -X delaybroker/cmd/delaybroker/settings.defaultEmbeddedListen=0.0.0.0:4222 \
      -X delaybroker/cmd/delaybroker/settings.defaultEmbeddedDir=/data" \
    -o /out/delaybroker ./cmd/delaybroker && mkdir /out/data

# The base image has CA certificates, time zones and the user 65532, and neither a shell nor a package manager.
FROM gcr.io/distroless/static-debian13:nonroot
ARG VERSION COMMIT
LABEL org.opencontainers.image.title="delaybroker" \
      org.opencontainers.image.description="Delayed messages for NATS JetStream" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT"
COPY LICENSE cmd/delaybroker/NOTICE /
COPY --from=build /out/delaybroker /delaybroker
# A new volume takes its owner from this directory.
COPY --from=build --chown=65532:65532 /out/data /data
# A number, since Kubernetes cannot verify that a user with a name is not root.
USER 65532:65532
VOLUME /data
# 4222 is the embedded server, on all addresses. A client that reaches the server may do everything, unless the server
# has users: DELAY_EMBEDDED_USER and DELAY_EMBEDDED_PASSWORD, or users in DELAY_EMBEDDED_CONFIG. 8422 has the page, the
# probes and the metrics. The page executes actions only with DELAY_HTTP_ACTIONS=on, and shows rows only with
# DELAY_HTTP_TOKEN.
EXPOSE 4222 8422
# The health check fails if a worker is stuck. It does not check NATS, since a restart does not end an outage of NATS.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/delaybroker","healthcheck"]
ENTRYPOINT ["/delaybroker"]
CMD ["serve"]
