import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

import { findProgram } from './install-package.mjs';

/** The programs that print the rules of the firewall. */
const RULES = [['iptables-save'], ['ip6tables-save'], ['nft', '--stateless', 'list', 'ruleset']];
const FORWARDING = ['/proc/sys/net/ipv4/ip_forward', '/proc/sys/net/ipv6/conf/all/forwarding'];

/** The interfaces of this machine, the rules of its firewall, and whether it forwards: one line each. */
export function hostNetwork() {
  return [
    ...readdirSync('/sys/class/net').map((name) => `interface ${name}`),
    ...RULES.flatMap(rulesBy),
    ...FORWARDING.map((path) => `${path} ${readIfThere(path)}`),
  ];
}

function rulesBy([program, ...args]) {
  if (!findProgram(program)) return [];
  const { stdout } = spawnSync(program, args, { encoding: 'utf8' });
  return (stdout ?? '')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => `${program} ${line.replace(/\[\d+:\d+\]/, '')}`);
}

function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}
