import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { hostNetwork } from './host-network.mjs';
import { findOrInstall } from './install-package.mjs';

/** Only an engine that hangs takes this long. An engine that can't start exits. */
const START_TIMEOUT_MILLIS = 120_000;

/** The address at which slirp4netns answers questions of DNS. */
const RESOLVER = 'nameserver 10.0.2.3\n';
/**
 * The script that runs in its own namespaces: $1 is the engine's resolv.conf, and the rest is its command. It prints a
 * line when it runs, and continues when its network is up. An empty folder instead of each of these separates the
 * engine from a containerd of this machine, so that it leaves nothing on this machine.
 */
const IN_NAMESPACES = `
  set -e
  for folder in /run/containerd /run/docker /opt/containerd /etc/docker; do
    if [ -d "$folder" ]; then mount -t tmpfs none "$folder"; fi
  done
  mount --bind "$1" /etc/resolv.conf
  shift
  echo there
  read -r _
  exec "$@" > /dev/null
`;

/** The engine of our own, the processes that must end with it, and the machine's network before it. */
let started;

/**
 * Starts a Docker engine for the time of this process, with its own socket, folder and network: its bridges,
 * rules and forwarding are in a network namespace, which reaches the outside like a user's program.
 * Missing programs are installed.
 * @returns `host`, its address, and `enter`, the words before a command that is to reach the ports of its
 *   containers; undefined if it can't be started
 */
export async function startOwnDocker() {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined;
  const dockerd = findOrInstall('dockerd', { apt: 'docker.io' });
  // Newer releases of Debian have this program in a package of its own.
  const docker = dockerd && findOrInstall('docker', { apt: 'docker-cli' });
  const slirp = docker && findOrInstall('slirp4netns', { apt: 'slirp4netns' });
  if (!slirp) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-docker-'));
  started = { folder, children: [], network: hostNetwork() };
  // This process may end without endOwnDocker.
  process.on('exit', () => started?.children.forEach((child) => child.kill('SIGTERM')));
  const host = `unix://${join(folder, 'docker.sock')}`;
  const engine = await startInNamespaces(folder, [
    dockerd,
    ...['--host', host],
    ...['--data-root', join(folder, 'data')],
    ...['--exec-root', join(folder, 'exec')],
    ...['--pidfile', join(folder, 'docker.pid')],
  ]);
  if (!engine || !(await connect(slirp, engine.pid)) || !(await listens(engine))) {
    await endOwnDocker();
    return undefined;
  }
  return { host, enter: ['nsenter', `--net=/proc/${engine.pid}/ns/net`, '--'] };
}

/**
 * Ends the engine that was started here, with all its containers and files.
 * @returns the lines of the machine's network that were not there before the engine; there should be none
 */
export async function endOwnDocker() {
  if (!started) return [];
  const { folder, children, network } = started;
  started = undefined;
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
  return hostNetwork().filter((line) => !network.includes(line));
}

async function startInNamespaces(folder, command) {
  const resolver = join(folder, 'resolv.conf');
  writeFileSync(resolver, RESOLVER);
  const engine = spawn(
    'unshare',
    ['--net', '--mount', 'sh', '-c', IN_NAMESPACES, 'sh', resolver, ...command],
    { stdio: 'pipe' },
  );
  started.children.push(engine);
  return (await says(engine, engine.stdout, 'there')) ? engine : undefined;
}

/** Connects the namespace of a process to the outside. */
async function connect(slirp, pid) {
  const options = ['--configure', '--mtu=65520', '--disable-host-loopback'];
  // slirp4netns ends when the second pipe is closed, so that it never outlives this process.
  const pipes = ['--ready-fd=3', '--exit-fd=4'];
  const child = spawn(slirp, [...options, ...pipes, String(pid), 'tap0'], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
  });
  started.children.push(child);
  return says(child, child.stdio[3], '1');
}

function listens(engine) {
  engine.stdin.end('\n');
  return says(engine, engine.stderr, 'API listen on');
}

/** Whether a process writes this text. If it ends or hangs before, its last lines are printed. */
async function says(child, stream, words) {
  const errors = [];
  createInterface({ input: child.stderr }).on('line', (line) => errors.push(line));
  const hasSaid = await new Promise((resolve) => {
    let text = '';
    stream.on('data', (data) => {
      text += data;
      if (text.includes(words)) resolve(true);
    });
    child.on('error', () => resolve(false)).on('exit', () => resolve(false));
    setTimeout(() => resolve(false), START_TIMEOUT_MILLIS).unref();
  });
  if (!hasSaid) console.error(errors.slice(-3).join('\n'));
  return hasSaid;
}
