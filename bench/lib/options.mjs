// The options of the benchmark.
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

/** Before much was added that most checks do not use. Nothing is released yet: the last release takes its place. */
const PINNED_BASE = '5e0c9dfa';

/**
 * @param {string[]} words of the command line
 * @param {{scenarios: string[], peers: string[]}} known
 * @throws {Error} that says what is wrong
 */
export function readOptions(words, { scenarios, peers }) {
  const { values } = parseArgs({
    args: words,
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      windows: { type: 'string', default: '50' },
      only: { type: 'string', default: '' },
      with: { type: 'string', multiple: true, default: [] },
      base: { type: 'string', default: PINNED_BASE },
      case: { type: 'string', default: '' },
      most: { type: 'string', default: 'Infinity' },
      before: { type: 'string' },
      publish: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const [rounds, seconds, windows, most] = ['rounds', 'seconds', 'windows', 'most'].map((name) => {
    const number = Number(values[name]);
    if (!(number > 0)) throw new Error(`--${name} takes a number above 0`);
    return number;
  });
  const only = values.only === '' ? scenarios : values.only.split(',');
  const unknown = only.find((name) => !scenarios.includes(name));
  if (unknown !== undefined) throw new Error(`no measurement is called ${unknown}`);
  if (values.publish && values.only !== '') {
    throw new Error('--publish takes a whole run, without --only');
  }
  return {
    help: values.help,
    publish: values.publish,
    rounds,
    seconds,
    windows,
    only,
    with: pathsOf(values.with, peers),
    base: values.base,
    ofCases: values.case,
    most,
    before: values.before === undefined ? undefined : checkoutIn(values.before),
  };
}

/** The command in a form for any machine: without this machine's paths. */
export function publicCommand(words) {
  const isPath = (word, before) => before === '--before' && !word.startsWith('--');
  const shown = words.map((word, i) => {
    if (isPath(word, words[i - 1])) return 'PATH';
    return word.replace(/^(--before=|(?:--with=)?[a-z-]+=)(?=.*\/).*$/, '$1PATH');
  });
  return ['npm run bench', ...(shown.length > 0 ? ['--', ...shown] : [])].join(' ');
}

function pathsOf(pairs, peers) {
  const paths = {};
  for (const pair of pairs) {
    const [, name, path] = /^([^=]+)=(.+)$/.exec(pair) ?? [];
    if (name === undefined) throw new Error(`--with takes NAME=PATH, not ${pair}`);
    if (!peers.includes(name)) throw new Error(`no peer is called ${name}: ${peers.join(', ')}`);
    paths[name] = resolve(path);
    if (!existsSync(paths[name])) throw new Error(`there is no program ${path}`);
  }
  return paths;
}

function checkoutIn(path) {
  const folder = resolve(path);
  if (existsSync(join(folder, 'dist', 'main.js'))) return folder;
  throw new Error(`there is no dist/main.js in ${path}`);
}
