// A peer that is not a Node program: it has files of its own, and its CPU time comes from /proc.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { freePort } from '../../scripts/lib/free-port.mjs';
import { accepts, end, track } from './children.mjs';

/** The unit of the times in /proc/<pid>/stat: USER_HZ, which is the same for all programs on Linux. */
const MICROS_PER_TICK = 10_000;

export class NativeServer {
  /** @param program an entry of `nativePrograms` */
  static async start({ name, path, asking, launch }, { redis, limit }) {
    const server = new NativeServer();
    const [port, ...sparePorts] = [await freePort(), await freePort(), await freePort()];
    const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
    const how = launch({ port, sparePorts, folder, redis, limit });
    for (const [file, content] of Object.entries(how.files ?? {})) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), content);
    }
    const [rlsPort] = sparePorts;
    Object.assign(server, { name, asking, folder, rlsPort, url: `http://127.0.0.1:${port}` });
    const words = [path, ...how.arguments.map(String)];
    const [command, ...rest] = how.startsOnOneCore
      ? ['taskset', '-c', firstCore(), ...words]
      : words;
    server.child = spawn(command, rest, {
      env: { PATH: process.env.PATH, ...stringsOf(how.environment) },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    track(server.child, name);
    await accepts(port);
    if (how.startsOnOneCore) mayRunOnAllCores(server.child.pid);
    return server;
  }

  async cpuMicros() {
    const stat = readFileSync(`/proc/${this.child.pid}/stat`, 'utf8');
    // The name, in parentheses, may have spaces. User and system time are fields 14 and 15.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * MICROS_PER_TICK;
  }

  async stop() {
    await end(this.child, 'SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const allowedCores = () =>
  /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))[1];
const firstCore = () => /^\d+/.exec(allowedCores())[0];

/** Lets the system place its threads on any core, like other programs' threads. They exist by now. */
function mayRunOnAllCores(pid) {
  const { status } = spawnSync('taskset', ['-a', '-c', '-p', allowedCores(), String(pid)]);
  if (status !== 0) throw new Error('taskset has failed');
}

const stringsOf = (values) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));
