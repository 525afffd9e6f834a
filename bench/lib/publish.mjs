// Writes results into BENCHMARKS.md, and their chart.
import { readFileSync, writeFileSync } from 'node:fs';

import { answers } from './answers.mjs';
import { chart } from './chart.mjs';
import { report } from './report.mjs';

const BENCHMARKS = new URL('../../BENCHMARKS.md', import.meta.url);
const CHART = new URL('../results/published.svg', import.meta.url);

/** Publishes the results of a whole run: the answers at the page's beginning, the tables below, and the chart. */
export function publish(results) {
  const page = readFileSync(BENCHMARKS, 'utf8');
  const withAnswers = between(page, 'answers', answers(results));
  writeFileSync(BENCHMARKS, between(withAnswers, 'results', report(results)));
  writeFileSync(CHART, chart(results));
}

/** @returns the page with this text between the two comments that name the part */
function between(page, part, text) {
  const [begin, end] = [`<!-- ${part} -->`, `<!-- end of ${part} -->`];
  const [head, tail] = [page.split(begin)[0], page.split(end)[1]];
  return `${head}${begin}\n\n${text}\n${end}${tail}`;
}
