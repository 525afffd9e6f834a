FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json ./
COPY src src
RUN npm run build

FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --no-audit --no-fund

FROM node:24-slim
ENV NODE_ENV=production
WORKDIR /app
# It says that the files in dist are ES modules.
COPY package.json ./
COPY --from=dependencies /app/node_modules node_modules
# The scripts are looked for beside dist.
COPY lua lua
COPY --from=build /app/dist dist
USER node
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=2s --start-period=5s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 8080}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/main.js"]
