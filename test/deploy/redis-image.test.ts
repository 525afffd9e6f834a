import { parseAllDocuments } from 'yaml';

import { tableRows } from '../support/docs/tables.js';
import { readText } from './repository-files.js';
import { readWorkflow } from './workflow.js';

const IMAGE = /redis:(\d+\.\d+\.\d+)-alpine/;

const composition = /\$\{REDIS_IMAGE:-([^}]+)\}/.exec(readText('docker-compose.yml'))![1]!;
const [, version = ''] = IMAGE.exec(composition) ?? [];
const line = version.split('.').slice(0, 2).join('.');

test('the composition, the overlay dev, and the tests run the same Redis', () => {
  const [statefulSet] = parseAllDocuments(readText('k8s/overlays/dev/redis.yaml'));
  const image = statefulSet!.getIn(['spec', 'template', 'spec', 'containers', 0, 'image']);
  expect(image).toBe(composition);

  const { jobs } = readWorkflow('.github/workflows/long.yml');
  const included = jobs.redis!.strategy!.matrix.include as { image: string }[];
  expect(included.map((entry) => entry.image)).toContain(`redis:${line}`);
});

test('that Redis is not older than docs/redis.md requires', () => {
  const named = new Map(
    tableRows('docs/redis.md', ['Line', 'CVE-2025-49844', 'CVE-2026-81934 as well']).map(
      ([name, , first]) => [name, first],
    ),
  );

  expect(patchOf(version)).toBeGreaterThanOrEqual(patchOf(named.get(`Redis ${line}`)!));
});

function patchOf(text: string): number {
  return Number(text.split('.')[2]);
}
