import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Debian's folder of servers, which is not on every PATH. */
const SERVERS = '/usr/sbin';
/**
 * Debian's packages run this program before they start a service:
 * https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt
 */
const START_POLICY = '/usr/sbin/policy-rc.d';
/**
 * Runs a command under a policy that forbids every start, unless the machine has a policy of its own. A
 * shell does this, because it removes the policy even when it is interrupted.
 */
const STARTING_NOTHING = [
  'sh',
  '-c',
  `
  if [ -e "$0" ]; then exec "$@"; fi
  trap 'rm -f "$0"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\\nexit 101\\n' > "$0" && chmod 755 "$0" && "$@"
  `,
  START_POLICY,
];

/** The path of a program of this machine, or undefined. */
export function findProgram(program) {
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), SERVERS]) {
    try {
      const path = join(folder, program);
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

/**
 * The path of a program of this machine. If it is missing, its package is installed, as root with apt-get or
 * with brew, and no service of the package is started.
 * @param packages the package's name for each of the two: { apt, brew }
 */
export function findOrInstall(program, packages) {
  return findProgram(program) ?? install(program, packages);
}

/**
 * Installs a package, as root with apt-get or with brew, and starts no service of it.
 * @returns the path of its program, or undefined
 */
export function install(program, packages) {
  const commands = installCommands(packages);
  for (const command of commands) {
    console.error(`no ${program} found; running ${command.join(' ')} ...`);
    // The output is of use only after a failure.
    const [run, ...args] = command[0] === 'apt-get' ? [...STARTING_NOTHING, ...command] : command;
    const { status, stdout, stderr } = spawnSync(run, args, {
      encoding: 'utf8',
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
    if (status !== 0) {
      console.error(stdout, stderr);
      return undefined;
    }
  }
  return commands.length > 0 ? findProgram(program) : undefined;
}

/** Whether `findOrInstall` can install a missing program. */
export function canInstall(packages) {
  return installCommands(packages).length > 0;
}

/** The command with which a user installs a package on this machine; undefined if there is none. */
export function commandToInstall(packages) {
  const command = installCommands(packages).at(-1);
  if (command) return command.filter((word) => !word.startsWith('-')).join(' ');
  return findProgram('apt-get') ? `sudo apt-get install ${packages.apt}` : undefined;
}

function installCommands({ apt, brew }) {
  if (findProgram('apt-get') && process.getuid?.() === 0) {
    return [
      ['apt-get', 'update'],
      ['apt-get', 'install', '-y', '--no-install-recommends', apt],
    ];
  }
  return brew && findProgram('brew') ? [['brew', 'install', brew]] : [];
}
