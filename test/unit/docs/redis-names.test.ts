import { loadScript } from '../../../src/redis/scripts/script-loader.js';
import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { listItems } from '../../support/docs/lists.js';
import { inBackticks } from '../../support/docs/tables.js';

const PAGE = 'docs/redis.md';

test('the page lists the names in Redis that the code builds', () => {
  const naming = new KeyNaming('sluice:');
  const names = naming.namesOf('job');
  const { state, requests, hits, holds, holdsByLapse, queue, waiting, replicas } = names;
  const { leader, wakeChannel, pastRequests } = names;
  const onPage = listItems(PAGE, '## Names').map(inBackticks);
  const [firstTurn] = pastRequests;
  expect(onPage).toEqual([
    state,
    requests,
    hits,
    holds,
    holdsByLapse,
    names.holders,
    names.holdersWaiting,
    names.limit('<name>'),
    names.recentIds('<name>')[0],
    names.recentIds(undefined)[0],
    firstTurn,
    queue,
    names.headsOf('lane'),
    names.headsOf('group'),
    waiting,
    names.records,
    names.granted,
    names.outcomes[0],
    replicas,
    names.history(0).replace('0', '<minute>'),
    `mutex:${leader}`,
    wakeChannel,
    naming.reports.name,
    naming.reports.channel,
  ]);
});

test('the page lists the fields of the state that the scripts write', () => {
  const { text } = loadScript('check');
  const calls = text.matchAll(/redis\.call\(\s*'HSET', (?:name|state|state_key),(.*?)\n? *\)\n/gs);
  // lib/stored writes these in a loop.
  const [, more = ''] = /\nlocal MORE = \{\n(.*?)\n\}\n/s.exec(text) ?? [];
  const written = new Set([...calls].flatMap(([, list = '']) => quoted(list)));
  for (const field of ['more', ...quoted(more)]) written.add(field);
  const fields = listItems(PAGE, '## Fields').map(inBackticks);
  expect(written.size).toBeGreaterThan(10);
  expect([...fields].sort()).toEqual([...written].sort());
});

function quoted(list: string): string[] {
  return [...list.matchAll(/'([a-z_]+)',/g)].map(([, field = '']) => field);
}
