import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../lib/run.mjs';
import { EQUIVALENT } from './equivalent.mjs';

const FOLDERS = ['lua', 'src/limiter', 'src/redis'];

/** Pairs of a pattern and its replacement. Each occurrence of a pattern makes one mutant. */
const SWAPS = {
  lua: [
    [/ <= /g, ' < '], [/ < /g, ' <= '], [/ >= /g, ' > '], [/ > /g, ' >= '],
    [/ == /g, ' ~= '], [/ ~= /g, ' == '], [/ \+ /g, ' - '], [/ - /g, ' + '],
    [/ and /g, ' or '], [/ or /g, ' and '], [/\btrue\b/g, 'false'], [/\bfalse\b/g, 'true'],
    [/^(\s*(?:else)?if )(.+)( then)$/g, '$1not ($2)$3'],
    [/(?<=[^\w.])1(?![\w.])/g, '2'],
  ],
  ts: [
    [/ <= /g, ' < '], [/ < /g, ' <= '], [/ >= /g, ' > '], [/ > /g, ' >= '],
    [/ === /g, ' !== '], [/ !== /g, ' === '], [/ \+ /g, ' - '], [/ - /g, ' + '],
    [/ && /g, ' || '], [/ \|\| /g, ' && '], [/\btrue\b/g, 'false'], [/\bfalse\b/g, 'true'],
    [/^(\s*if \()(.+)(\) (?:return|throw|continue|this|\{).*)$/g, '$1!($2)$3'],
    [/(?<=[^\w.])1(?![\w.])/g, '2'],
  ],
}; // prettier-ignore

/** A call that is alone on its line, and is removed. Declarations and keywords are not calls. */
const STATEMENT = {
  lua: /^\s*(?!return|local|if|for|while|end|else|function)[\w.]+\(.*\)$/,
  ts: /^\s*(?:void |await )?(?!return|const|if|for|while|super|import|export)[\w#.?]+\(.*\);$/,
};

/** Lines without code that runs: comments, imports, types, brackets. */
const PASSED_OVER =
  /^\s*(?:--|\/\/|\*|\/\*|import |export (?:type|interface)|(?:readonly |#?\w+\??: [\w<>|[\] ]+;$)|[})\]]*[;,]?$)/;

/**
 * Changes of one line each, at most one per line. They are chosen by what they change, so that the same seed chooses the same ones as
 * long as those lines are there: a run shows what other changes of the code, or of the tests, have lost.
 */
export function chooseMutants(seed, count, only) {
  return sources()
    .filter((file) => file.includes(only))
    .flatMap((file) => linesOf(file))
    .map((mutants) => first(mutants, seed))
    .filter(({ mutant }) => !isEquivalent(mutant))
    .sort((one, other) => one.order.localeCompare(other.order))
    .slice(0, count)
    .map(({ mutant }) => mutant);
}

/** The mutant of a line that comes first, and its order among all. */
function first(mutants, seed) {
  const ordered = mutants.map((mutant) => {
    const { before, line, other } = mutant;
    const change = JSON.stringify([seed, before, line, other]);
    return { mutant, order: createHash('sha256').update(change).digest('hex') };
  });
  return ordered.reduce((one, other) => (other.order < one.order ? other : one));
}

function sources() {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /(?<!\.d)\.(?:ts|lua)$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length)),
  ).sort();
}

/** The mutants of each line of a file that can be changed. */
function linesOf(file) {
  const language = file.endsWith('.lua') ? 'lua' : 'ts';
  const lines = readFileSync(join(ROOT, file), 'utf8').split('\n');
  return lines.flatMap((line, i) => {
    if (PASSED_OVER.test(line)) return [];
    const changed = SWAPS[language].flatMap(([pattern, replacement]) =>
      changesBy(line, pattern, replacement),
    );
    if (STATEMENT[language].test(line)) changed.push('');
    const mutants = changed.map((other) => mutantOf(file, lines, i, other));
    return mutants.length > 0 ? [mutants] : [];
  });
}

/** The line with each match replaced, one at a time. */
function changesBy(line, pattern, replacement) {
  return [...line.matchAll(pattern)].map(({ index, 0: match }) => {
    const once = new RegExp(pattern.source, 'y');
    once.lastIndex = index;
    const other = line.replace(once, replacement);
    return other === line
      ? line.slice(0, index) + replacement + line.slice(index + match.length)
      : other;
  });
}

function mutantOf(file, lines, index, other) {
  const line = lines[index];
  return {
    file,
    before: lines[index - 1]?.trim(),
    line: line.trim(),
    other: other.trim(),
    text: `${file}:${index + 1}: ${line.trim()}  ->  ${other.trim() || '(nothing)'}`,
    apply: (text) =>
      text
        .split('\n')
        .map((each, i) => (i === index ? other : each))
        .join('\n'),
  };
}

function isEquivalent(mutant) {
  return EQUIVALENT.some(
    ({ file, line, other, before = mutant.before }) =>
      mutant.file === file &&
      mutant.line === line &&
      mutant.other === other &&
      mutant.before === before,
  );
}
