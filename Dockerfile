# Another image of Node or Go: docker build --build-arg NODE_IMAGE=... --build-arg GO_IMAGE=...
ARG NODE_IMAGE
ARG GO_IMAGE
# The newest LTS release. For amd64 and arm64: docker buildx build --platform linux/amd64,linux/arm64 .
FROM ${NODE_IMAGE:-node:24.21.0-bookworm-slim} AS base

FROM base AS build
WORKDIR /app
# For a registry of your own: docker build --build-arg NPM_CONFIG_REGISTRY=...
ARG NPM_CONFIG_REGISTRY
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --no-audit --no-fund
COPY scripts/compiler scripts/compiler
RUN npm ci --prefix scripts/compiler --no-audit --no-fund
COPY tsconfig.json ./
COPY src src
RUN node scripts/compiler/node_modules/typescript/bin/tsc -p scripts/compiler

# Go compiles for the other platform faster than an emulator runs it. Without BuildKit there is one platform.
FROM --platform=${BUILDPLATFORM:-linux} ${GO_IMAGE:-golang:1.26.8-bookworm} AS command-line
ARG TARGETARCH
WORKDIR /clients/go
COPY clients/go ./
RUN CGO_ENABLED=0 GOARCH=$TARGETARCH go build -trimpath -ldflags=-s -o /sluice-client ./cmd/sluice-client

FROM base
LABEL org.opencontainers.image.title="sluice" \
      org.opencontainers.image.description="A rate-limiting service with exact limits and a fair queue across replicas" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
WORKDIR /app
# package.json says that the files in dist are ES modules.
COPY package.json ./
COPY --from=build /app/node_modules node_modules
# Sluice looks for the scripts, gRPC's messages and the dashboard's page beside dist.
COPY lua lua
COPY proto proto
COPY ui ui
COPY --from=build /app/dist dist
# The command line: docker run --rm --entrypoint sluice-client sluice --help
COPY --from=command-line /sluice-client /usr/local/bin/
# Node's image has this user, with the id 1000; by number, so that Kubernetes sees that it is not root.
USER 1000:1000
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=10s --start-period=10s CMD ["node", "dist/healthcheck.js"]
# Directly, without npm or a shell between Node and its signals.
CMD ["node", "dist/main.js"]
