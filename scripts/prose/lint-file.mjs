// Lints a file with textlint: a page as Markdown, and only the prose of other files.
import { readFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { fileURLToPath } from 'node:url';

import { TextlintKernel } from '@textlint/kernel';
import markdown from '@textlint/textlint-plugin-markdown';
import text from '@textlint/textlint-plugin-text';
import prh from 'textlint-rule-prh';

import { proseOf } from './prose-of.mjs';

const WORDS = fileURLToPath(new URL('words.yml', import.meta.url));
const PRH = { rulePaths: [WORDS], checkLink: true, checkEmphasis: true, checkCodeComment: ['js'] };

const kernel = new TextlintKernel();
const options = {
  plugins: [
    { pluginId: 'markdown', plugin: markdown.default ?? markdown },
    { pluginId: 'text', plugin: text.default ?? text },
  ],
  rules: [{ ruleId: 'prh', rule: prh.default ?? prh, options: PRH }],
};

/** @returns the findings in a file: line, column and message of each; none in a file without prose */
export async function lintFile(path) {
  const type = extname(path) || basename(path);
  const prose = type === '.md' ? await readFile(path, 'utf8') : await proseOf(path, type);
  if (prose === undefined) return [];
  const ext = type === '.md' ? '.md' : '.txt';
  const { messages } = await kernel.lintText(prose, { ...options, ext, filePath: path });
  return messages.map(({ loc, message }) => ({
    ...loc.start,
    message: message.replaceAll(/\s+/g, ' '),
  }));
}
