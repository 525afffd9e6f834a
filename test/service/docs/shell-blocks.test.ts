import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { describePages, PAGES, PAGES_OF_RULES } from '../../support/docs/run-pages.js';
import { portsSetBy, shellBlocks } from '../../support/docs/shell-blocks.js';
import { ShellSession } from '../../support/docs/shell-session.js';

test('each page starts its programs on ports of its own, none of which is a usual one', () => {
  const ports = PAGES.flatMap(({ blocks }) => [...new Set(portsSetBy(blocks))]);
  expect(ports.filter((port, i) => ports.indexOf(port) !== i)).toEqual([]);
  expect(ports.filter((port) => ['8080', '8081', '9090', '6379'].includes(port))).toEqual([]);
});

/** A service in the background, whose log the page reads, and the line below it. */
const LOGGED = /^( *)(.*)node dist\/main\.js > (\S+) &\n *(.*)$/gm;
const STARTED = /^ *(.*)npm (?:-s )?start\b(.*)$/gm;

test('each service of a page has a port, and its page waits until it serves or has ended', () => {
  const codes = PAGES.flatMap(({ blocks }) => blocks)
    .filter(({ servesOn }) => servesOn === undefined)
    .map(({ code }) => code.replaceAll('\\\n', ''));
  for (const [, , settings, log, wait] of codes.flatMap((code) => [...code.matchAll(LOGGED)])) {
    expect(settings).toMatch(/^PORT=\d+ /);
    expect(wait).toBe(
      `until sleep 0.2; grep -qs '"serving"' ${log!}; do kill -0 $! || break; done`,
    );
  }
  const starts = codes.flatMap((code) => [...code.matchAll(STARTED)]);
  expect(starts.length).toBeGreaterThan(10);
  for (const [, settings, options] of starts.filter(([text]) => !text.includes('--check-config'))) {
    expect(settings).toMatch(/^PORT=(\d+|\$port) /);
    expect(options).toContain(' -- --background');
  }
});

describe('a page whose port another program has taken', () => {
  const folder = useTemporaryFolder();
  // Answers whoever looks whether anything answers.
  const other = createServer((_, response) => response.end('another program'));
  const page = 'docs/approvals.md';
  const [block] = shellBlocks(page).filter(({ notRun }) => notRun === undefined);
  let session: ShellSession;
  let port: string;
  beforeAll(async () => {
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    port = String((other.address() as AddressInfo).port);
    const replaced = Object.fromEntries(portsSetBy([block!]).map((set) => [set, port]));
    session = await ShellSession.start({ folder, replaced });
  });
  afterAll(async () => {
    await session.end();
    other.close();
  });

  test('says that its service has not started, and why', async () => {
    // npm prints the script that it runs.
    const code = `{ ${block!.code}\n} 2>&1 | grep -v '^>' | grep .`;
    const prints = `PORT: got ${port} (EADDRINUSE), takes a port that no other process listens on`;
    const { printed, expected } = await session.run({ ...block!, code, prints });
    expect(printed).toBe(expected);
  });
});

describePages(PAGES_OF_RULES);
