import { readFileSync } from 'node:fs';

import { readPage, ROOT } from '../../support/docs/pages.js';

const RESULTS = `${ROOT}bench/results/published`;

const [answersPath, chartPath] = ['../../../bench/lib/answers.mjs', '../../../bench/lib/chart.mjs'];
const { answers } = (await import(answersPath)) as { answers: (results: unknown) => string };
const { chart } = (await import(chartPath)) as { chart: (results: unknown) => string };
const results: unknown = JSON.parse(readFileSync(`${RESULTS}.json`, 'utf8'));

test('BENCHMARKS.md begins with the answers of the recorded results', () => {
  const [, shown] = /<!-- answers -->\n([^]*?)<!-- end of answers -->/.exec(
    readPage('BENCHMARKS.md'),
  )!;
  expect(shown!.trim()).toBe(answers(results).trim());
});

test('the chart of BENCHMARKS.md is the one of the recorded results', () => {
  expect(readFileSync(`${RESULTS}.svg`, 'utf8')).toBe(chart(results));
});
