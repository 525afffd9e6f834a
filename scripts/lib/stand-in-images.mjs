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
  golang: () => ({
    programs: { '/bin/sh': '/bin/sh' },
    files: goFolders(),
    changes: ['ENV PATH=/usr/local/go/bin:/usr/bin:/bin', 'ENV GOROOT=/usr/local/go'],
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
 * Whether the engine has these images.
 * @param options.pull whether it may pull missing images
 */
export function hasImages(host, images, { pull }) {
  return images.every(({ image }) => hasImage(host, image, { pull }));
}

/**
 * Provides an engine of our own with these images. Missing images are pulled. Without a registry they are replaced by
 * stand-ins from this machine's programs and their libraries, under names that differ from the official ones.
 * @returns the environment variables that select the stand-ins; undefined if an image is missing
 */
export function provideImages(host, images) {
  const environment = {};
  for (const { variable, image } of images) {
    if (hasImage(host, image, { pull: true })) continue;
    const repository = image.split(':')[0];
    const standIn = `sluice-test/${repository}:local`;
    if (!importStandIn(host, repository, standIn)) return undefined;
    console.error(
      `${image} can't be pulled: ${standIn}, of this machine's programs, takes its place`,
    );
    environment[variable] = standIn;
  }
  return environment;
}

function hasImage(host, image, { pull }) {
  return docker(host, 'image', 'inspect', image) || (pull && docker(host, 'pull', image));
}

function docker(host, ...args) {
  const options = { stdio: 'ignore', timeout: PULL_TIMEOUT_MILLIS };
  return spawnSync('docker', ['--host', host, ...args], options).status === 0;
}

function importStandIn(host, repository, name) {
  const standIn = STAND_INS[repository]?.();
  if (!standIn) return false;
  const { programs, files = {}, texts = {}, changes } = standIn;
  if (Object.values({ ...programs, ...files }).includes(undefined)) return false;
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
      name,
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

/** What compiles Go, of the Go on PATH. Without Go, a program is missing. */
function goFolders() {
  const go = findProgram('go');
  if (!go) return { '/usr/local/go/bin/go': undefined };
  const root = spawnSync(go, ['env', 'GOROOT'], { encoding: 'utf8' }).stdout.trim();
  const names = ['bin', 'pkg', 'src', 'go.env', 'VERSION'];
  return Object.fromEntries(names.map((name) => [`/usr/local/go/${name}`, join(root, name)]));
}

/** The npm on PATH, which need not belong to this Node. */
function npmFolder() {
  return dirname(dirname(realpathSync(findProgram('npm'))));
}
