// Limitador's server (github.com/Kuadrant/limitador): Rust, in memory or on Redis, asked by its HTTP API.

export const asking = {
  path: '/check_and_report',
  body: '{"namespace":"bench","values":{"key":"KEY"},"delta":1}',
  approved: { text: 'null', length: 4 },
  refused: { text: 'null', length: 4 },
};

export const programs = {
  limitador: { launch: (parts) => launch(parts, ['memory']) },
  'limitador-redis': {
    usesRedis: true,
    launch: (parts) => launch(parts, ['redis', parts.redis.url]),
  },
};

export const version = 'option';

function launch({ port, sparePorts, folder, limit }, storage) {
  const http = ['--http-ip', '127.0.0.1', '--http-port', port];
  const grpc = ['--rls-ip', '127.0.0.1', '--rls-port', sparePorts[0]];
  return {
    arguments: [...http, ...grpc, `${folder}/limits.yaml`, ...storage],
    environment: {},
    files: { 'limits.yaml': limitsFile(limit) },
    // Limitador starts a worker thread for each core that it may run on.
    startsOnOneCore: true,
  };
}

/** A counter for each value of `key`. */
function limitsFile(limit) {
  return `- namespace: bench
  max_value: ${limit}
  seconds: 1
  conditions: []
  variables:
    - descriptors[0]['key']
`;
}
