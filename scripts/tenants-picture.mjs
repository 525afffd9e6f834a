// `npm run docs:tenants`: lets ten tenants wait for a key with one list, for one with fair groups, and for one with fair groups
// and a maximum for one of them. That one sends ten times as much as any other. It then draws docs/images/tenants.svg and
// docs/images/stopped-tenant.svg of what each got.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { build, installDependencies } from './lib/prepare.mjs';
import { startReplica } from './demo/processes.mjs';
import { picture } from './tenants/picture.mjs';

const TENANTS = 10;
const PER_SECOND = 10;
const RUN_MILLIS = 20_000;
/** Of each tenant. They are more than are approved in the run, also of the others. */
const REQUESTS = 40;
const TIMES_AS_MUCH = 10;
const RULES = {
  keys: [
    {
      key_pattern: '.*',
      key_pattern_is_regex: true,
      max_requests_per_window: PER_SECOND,
      window_millis: 1000,
      max_requests_in_queue: 2 * TIMES_AS_MUCH * TENANTS * REQUESTS,
    },
    { key_pattern: 'fair', queue: { fair: true } },
    {
      key_pattern: 'stopped',
      queue: { fair: true },
      limits: [
        {
          name: 'tenant',
          per: 'group',
          // More than any other gets.
          max_requests_per_window: REQUESTS,
          window_millis: 10_000,
          maxima: { 'tenant-0': 5 },
        },
      ],
    },
  ],
};
const groupOf = (tenant) => `&group=tenant-${tenant}`;
const PICTURES = {
  tenants: {
    label: 'What each of ten tenants has got, by the order of the waiters',
    one: 'the busy tenant',
    panels: [
      { key: 'one-list', title: 'One list, first come, first served', group: () => '' },
      { key: 'fair', title: 'Fair groups', group: groupOf },
    ],
  },
  'stopped-tenant': {
    label: 'What each of ten tenants has got, of which one may take 5 in 10 s',
    one: 'the tenant with a maximum',
    panels: [
      { key: 'stopped', title: 'Fair groups, and 5 in 10 s for one of them', group: groupOf },
    ],
  },
};

installDependencies();
build();
const folder = mkdtempSync(join(tmpdir(), 'sluice-tenants-'));
const config = join(folder, 'rules.json');
writeFileSync(config, JSON.stringify(RULES));
const { url } = await startReplica('tenants', { CONFIG_FILE: config, MAX_WAITERS: '10000' });
for (const [name, { panels, ...texts }] of Object.entries(PICTURES)) {
  const run = [];
  for (const { key, title, group } of panels) {
    run.push({ title, tenants: await approvalsOf(key, group) });
  }
  const drawn = picture(run, RUN_MILLIS, texts);
  writeFileSync(new URL(`../docs/images/${name}.svg`, import.meta.url), drawn);
}
rmSync(folder, { recursive: true });
process.exit(0);

/** @returns of each tenant when its requests were approved, in milliseconds from the start on. The first one is the busy one */
async function approvalsOf(key, group) {
  const approvals = Array.from({ length: TENANTS }, () => []);
  const end = new AbortController();
  let start;
  const ask = async (tenant) => {
    const check = `${url}/rate/${key}?canWait=true${group(tenant)}`;
    const { status } = await fetch(check, { method: 'POST', signal: end.signal });
    if (status === 200) approvals[tenant].push(performance.now() - start);
  };
  const pause = (millis) => fetch(`${url}/rate/${key}?pauseMillis=${millis}`, { method: 'PUT' });
  // Until all wait, so that nobody gets anything before the others have come.
  await pause(RUN_MILLIS);
  const asked = [];
  for (let tenant = 0; tenant < TENANTS; tenant += 1) {
    const requests = tenant === 0 ? TIMES_AS_MUCH * REQUESTS : REQUESTS;
    for (let i = 0; i < requests; i += 1) asked.push(ask(tenant).catch(() => undefined));
    await untilWaiting(key, asked.length);
  }
  start = performance.now();
  await pause(0);
  await delay(RUN_MILLIS);
  end.abort();
  await Promise.all(asked);
  return approvals;
}

async function untilWaiting(key, count) {
  const waiting = async () => (await (await fetch(`${url}/debug/${key}`)).json()).NumWaiting;
  while ((await waiting()) < count) await delay(20);
}
