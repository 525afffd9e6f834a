// Limitador's server (github.com/Kuadrant/limitador): Rust, in memory or on Redis, asked by its HTTP API.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

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

/**
 * What is left out of a checkout before it is built: the disk storage, which is not measured. It needs RocksDB, which takes an
 * hour to build, and the rest minutes.
 */
const WITHOUT_DISK = {
  'limitador-server/Cargo.toml': [
    [
      /^(limitador = \{ path = "[^"]+") \}/m,
      '$1, default-features = false, features = ["redis_storage"] }',
    ],
  ],
  // What both the disk storage and Redis need is said to be of the disk storage.
  'limitador/src/counter.rs': [[/^ {4}#\[cfg\(feature = "disk_storage"\)\]\n/m, '']],
  'limitador/src/storage/keys.rs': [[/^#\[cfg\(feature = "disk_storage"\)\]\n/m, '']],
  'limitador-server/src/config.rs': [
    [/^ {4}Disk\(.*\n/m, ''],
    [/^#\[derive.*\npub struct DiskStorageConfiguration \{[^}]*\}\n/m, ''],
  ],
  'limitador-server/src/main.rs': [
    [/ DiskStorageConfiguration,/, ''],
    [/^use limitador::storage::disk::.*\n/m, ''],
    [/^.*StorageConfiguration::Disk\(cfg\) =>.*\n/m, ''],
    [/^ {4}fn disk_limiter\([^]*?^ {4}\}\n/m, ''],
    [/^ {8}Some\(\("disk", [^]*?^ {8}\}\),\n/m, ''],
  ],
};

/** Builds a checkout without its disk storage. @returns the path of the program */
export function build(checkout) {
  const program = join(checkout, 'target', 'release', 'limitador-server');
  if (existsSync(program)) return program;
  for (const [file, edits] of Object.entries(WITHOUT_DISK)) {
    const path = join(checkout, file);
    const text = readFileSync(path, 'utf8');
    writeFileSync(
      path,
      edits.reduce((edited, [from, to]) => edited.replace(from, to), text),
    );
  }
  const words = ['build', '--release', '--package', 'limitador-server'];
  const { status, error } = spawnSync('cargo', words, { cwd: checkout, stdio: 'inherit' });
  if (status !== 0) throw new Error(`cargo could not build ${checkout}`, { cause: error });
  return program;
}

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
