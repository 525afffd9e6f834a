// Envoy's rate limit service (github.com/envoyproxy/ratelimit): Go, on Redis, asked by its /json.

export const asking = {
  path: '/json',
  body: '{"domain":"bench","descriptors":[{"entries":[{"key":"key","value":"KEY"}]}]}',
  approved: { text: '"OK"' },
  refused: { text: '"OVER_LIMIT"' },
};

export const programs = {
  'envoy-ratelimit': {
    usesRedis: true,
    launch: ({ port, sparePorts, folder, redis, limit }) => ({
      arguments: [],
      environment: {
        GOMAXPROCS: '1',
        HOST: '127.0.0.1',
        PORT: port,
        GRPC_HOST: '127.0.0.1',
        GRPC_PORT: sparePorts[0],
        DEBUG_HOST: '127.0.0.1',
        DEBUG_PORT: sparePorts[1],
        BACKEND_TYPE: 'redis',
        REDIS_SOCKET_TYPE: 'tcp',
        REDIS_URL: `127.0.0.1:${redis.port}`,
        RUNTIME_ROOT: folder,
        RUNTIME_SUBDIRECTORY: 'limits',
        RUNTIME_WATCH_ROOT: 'false',
        USE_STATSD: 'false',
        DISABLE_STATS: 'true',
        LOG_LEVEL: 'error',
      },
      files: { 'limits/config/bench.yaml': limitsFile(limit) },
    }),
  },
};

export const version = 'checkout';

/** A limit for each value of `key`. */
function limitsFile(limit) {
  return `domain: bench
descriptors:
  - key: key
    rate_limit:
      unit: second
      requests_per_unit: ${limit}
`;
}
