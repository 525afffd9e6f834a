// Another commit of Sluice, built in a folder of its own, which is kept for the next time.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { progress } from './progress.mjs';

/** The folder of this build. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const KEPT = join(ROOT, 'node_modules', '.cache', 'sluice-bench');

/**
 * @param {string} commit any name of it that git knows
 * @returns the folder, and whether that commit has another one among its ancestors
 */
export function builtAt(commit) {
  const hash = git('rev-parse', '--verify', `${commit}^{commit}`).trim();
  const folder = join(KEPT, hash);
  if (!existsSync(folder)) {
    progress(`builds ${hash.slice(0, 8)}`);
    const unfinished = `${folder}-unfinished`;
    rmSync(unfinished, { recursive: true, force: true });
    mkdirSync(unfinished, { recursive: true });
    const archive = git({ encoding: 'buffer' }, 'archive', hash);
    execFileSync('tar', ['-x'], { cwd: unfinished, input: archive });
    const npm = (...words) => execFileSync('npm', words, { cwd: unfinished, stdio: 'ignore' });
    npm('ci', '--omit=dev', '--no-audit', '--no-fund');
    npm('run', 'build');
    renameSync(unfinished, folder);
  }
  return { hash, folder, has: (ancestor) => isAncestor(ancestor, hash) };
}

function isAncestor(ancestor, hash) {
  const words = ['merge-base', '--is-ancestor', ancestor, hash];
  const { status, stderr } = spawnSync('git', words, { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0 && status !== 1) throw new Error(stderr);
  return status === 0;
}

function git(...words) {
  const options = typeof words[0] === 'object' ? words.shift() : { encoding: 'utf8' };
  return execFileSync('git', words, { cwd: ROOT, maxBuffer: 2 ** 30, ...options });
}
