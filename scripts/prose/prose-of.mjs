// The prose of a file: comments, test titles, and texts of several words. Everything else becomes spaces, so that
// positions stay.
import { readFile } from 'node:fs/promises';

import { partsOf } from './script-prose.mjs';

/** A text for readers has at least three words. Names and paths have fewer. */
const SENTENCE = /\S+ \S+ \S+/;

const LUA = /--\[\[[\s\S]*?\]\]|--[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g;
const GO = /\/\/[^\n]*|"(?:\\.|[^"\\\n])*"/g;
const HASH = /(?<=^|\s)#.*$/gm;

const EXTRACTORS = {
  '.ts': ofScript,
  '.js': ofScript,
  '.mjs': ofScript,
  '.lua': matching(LUA),
  '.go': matching(GO),
  // These files have texts as values: descriptions of alerts, titles of panels, explanations of fields.
  ...sameFor(['.yml', '.yaml', '.tpl', '.json', '.html', '.txt', '.proto'], (source) => source),
  ...sameFor(['.cfg', '.conf', '.sh', '.acl', 'Dockerfile', 'Caddyfile'], matching(HASH)),
};

/** @returns the prose, or undefined for a kind of file that has none */
export async function proseOf(path, type) {
  if (path.endsWith('package-lock.json')) return undefined;
  return EXTRACTORS[type]?.(await readFile(path, 'utf8'));
}

function ofScript(source) {
  const parts = partsOf(source);
  const kept = parts.filter(
    ({ range, isText, isTitle }) => !isText || isTitle || SENTENCE.test(source.slice(...range)),
  );
  return keep(
    withSentences(source, parts),
    kept.map(({ range }) => range),
  );
}

/** The source with its titles as sentences, with a capital and a full stop, since patterns may ask for these. */
function withSentences(source, parts) {
  let text = '';
  for (const { range, isTitle } of parts) {
    if (!isTitle) continue;
    const title = source.slice(...range);
    text += source.slice(text.length, range[0]);
    text += title
      .replace(/(?<=^['"`])[a-z]/, (letter) => letter.toUpperCase())
      .replace(/['"`]$/, '.');
  }
  return text + source.slice(text.length);
}

/** Extracts what a pattern finds: comments and texts. */
function matching(pattern) {
  return (source) => keep(source, [...source.matchAll(pattern)].filter(isProse).map(rangeOf));
}

function isProse([match]) {
  return /^(?:--|\/\/|#)/.test(match) || SENTENCE.test(match);
}

function rangeOf({ index, 0: match }) {
  return [index, index + match.length];
}

/** The source with only these ranges, without the marks around comments and texts. */
function keep(source, ranges) {
  const blank = source.replaceAll(/[^\n]/g, ' ');
  let prose = '';
  for (const [begin, end] of ranges.sort(([a], [b]) => a - b)) {
    prose += blank.slice(prose.length, begin) + withoutSigns(source.slice(begin, end));
  }
  return prose + blank.slice(prose.length);
}

function withoutSigns(part) {
  return part
    .replaceAll(/^['"`]|['"`]$|\$\{$/g, (sign) => ' '.repeat(sign.length))
    .replaceAll(/^(\s*)(\/\/|\/\*+|\*\/|\*|--\[\[|--+|#+)/gm, (sign) => ' '.repeat(sign.length))
    .replaceAll(/\*\/$|\]\]$/g, '  ')
    .replaceAll(/`[^`\n]*`/g, (code) => ' '.repeat(code.length));
}

function sameFor(types, extract) {
  return Object.fromEntries(types.map((type) => [type, extract]));
}
