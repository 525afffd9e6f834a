import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { findOrInstall, findProgram } from './install-package.mjs';

/** The path of node in Node's own image. */
const NODE = '/usr/local/bin/node';
const NPM = '/usr/local/lib/node_modules/npm';
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const PULL_TIMEOUT_MILLIS = 120_000;

/** The content of the stand-in for each image, by the image's repository. */
const STAND_INS = {
  node: () => ({
    programs: { [NODE]: process.execPath, '/bin/sh': '/bin/sh', '/usr/bin/env': '/usr/bin/env' },
    files: { [NPM]: npmFolder(), [CERTIFICATES]: CERTIFICATES },
    texts: {
      '/usr/local/bin/npm': `#!/bin/sh\nexec node ${NPM}/bin/npm-cli.js "$@"\n`,
      '/etc/passwd': 'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n',
    },
    changes: ['ENV PATH=/usr/local/bin:/usr/bin:/bin', `ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES}`],
  }),
  redis: () => ({
    programs: {
      '/usr/bin/redis-server': findOrInstall('redis-server', { apt: 'redis-server' }),
      '/usr/bin/redis-cli': findProgram('redis-cli'),
      '/bin/sh': '/bin/sh',
    },
    // Like Redis's own image, it accepts connections from other containers.
    texts: {
      '/usr/local/bin/redis-server':
        '#!/bin/sh\nexec /usr/bin/redis-server --protected-mode no "$@"\n',
    },
    changes: ['ENV PATH=/usr/local/bin:/usr/bin', 'CMD ["redis-server"]'],
  }),
  haproxy: () => ({
    programs: { '/usr/sbin/haproxy': findOrInstall('haproxy', { apt: 'haproxy' }) },
    changes: ['CMD ["/usr/sbin/haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]'],
  }),
};

/**
 * Sees that the engine has these images. The engine pulls missing ones. Without a registry it gets stand-ins,
 * made of this machine's programs and their libraries.
 * @returns whether it has them all; if not, prints which one is missing
 */
export function provideImages(host, images) {
  return images.every((image) => {
    if (docker(host, 'image', 'inspect', image) || docker(host, 'pull', image)) return true;
    if (importStandIn(host, image)) {
      console.error(
        `${image} can't be pulled: an image of this machine's programs takes its place`,
      );
      return true;
    }
    console.error(`no image ${image}: skipping the tests of the image and the composition`);
    return false;
  });
}

function docker(host, ...args) {
  const options = { stdio: 'ignore', timeout: PULL_TIMEOUT_MILLIS };
  return spawnSync('docker', ['--host', host, ...args], options).status === 0;
}

function importStandIn(host, image) {
  const standIn = STAND_INS[image.split(':')[0]]?.();
  if (!standIn || Object.values(standIn.programs).includes(undefined)) return false;
  const { programs, files = {}, texts = {}, changes } = standIn;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-image-'));
  const root = join(folder, 'root');
  try {
    for (const [path, program] of Object.entries(programs)) copyProgram(root, path, program);
    for (const [path, source] of Object.entries(files)) copy(root, path, source);
    for (const [path, text] of Object.entries(texts)) write(join(root, path), text);
    mkdirSync(join(root, 'tmp'), { recursive: true, mode: 0o1777 });
    const archive = join(folder, 'root.tar');
    if (spawnSync('tar', ['-C', root, '-cf', archive, '.']).status !== 0) return false;
    return docker(
      host,
      'import',
      ...changes.flatMap((change) => ['--change', change]),
      archive,
      image,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function copyProgram(root, path, program) {
  copy(root, path, program);
  const { stdout } = spawnSync('ldd', [program], { encoding: 'utf8' });
  for (const library of stdout.match(/\/\S+/g) ?? []) copy(root, library, library);
}

function copy(root, path, source) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  cpSync(realpathSync(source), join(root, path), { recursive: true, dereference: true });
}

function write(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o755 });
}

function npmFolder() {
  const { stdout } = spawnSync('npm', ['root', '-g'], { encoding: 'utf8' });
  return join(stdout.trim(), 'npm');
}
