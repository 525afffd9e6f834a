import { mkdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { SettingsError } from '../../../src/config/named-file.js';
import { WatchedFiles } from '../../../src/config/watched-files.js';
import { recordLog, type RecordedLog } from '../../support/recorded-log.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

const ONE_HOUR = 3_600_000;

const folder = useTemporaryFolder();

let log: RecordedLog;
let paths: string[];
/** The values of all reloads. */
let heard: string[];
let watched: WatchedFiles<string> | undefined;
beforeEach(async () => {
  log = recordLog();
  heard = [];
  paths = [join(folder, uniqueKey()), join(folder, uniqueKey())];
  await write('a', 'b');
});
afterEach(() => {
  watched?.close();
  watched = undefined;
});

async function write(...contents: string[]): Promise<void> {
  for (const [i, content] of contents.entries()) await writeFile(paths[i]!, content);
}

/** Two files whose value is all their letters; an `x` is an error. */
async function open(
  pollMillis = ONE_HOUR,
  more: { whenGone?: (last: string) => string } = {},
): Promise<WatchedFiles<string>> {
  watched = await WatchedFiles.open(
    {
      what: 'letters',
      files: paths.map((path, i) => ({ variable: `FILE_${i}`, path })),
      parse: (contents) => {
        const letters = contents.join('');
        if (letters.includes('x')) throw new SettingsError('FILE_0', 'an x', 'other letters');
        return letters;
      },
      describe: (letters) => ({ count: letters.length }),
      ...more,
    },
    log.logger,
    pollMillis,
  );
  watched.onReload((value) => heard.push(value));
  return watched;
}

async function look(times: number): Promise<void> {
  for (let i = 0; i < times; i += 1) await watched!.check();
}

/** The lines of the log, without their times. */
function told(): object[] {
  return log.lines.map(({ time: _time, ...line }) => line);
}

const reloaded = (count: number) => ({ level: 'info', count, msg: 'letters reloaded' });
const notReloaded = (reason: string) => ({
  level: 'error',
  reason,
  msg: 'letters not reloaded, the last good ones stay in use',
});

describe('files that are invalid from the start', () => {
  test('are an error that names the setting if a file can not be read', async () => {
    await rm(paths[1]!);

    await expect(open()).rejects.toThrow(
      new SettingsError('FILE_1', `${JSON.stringify(paths[1])} (ENOENT)`, 'a file to read'),
    );
  });

  test('are an error if one of the paths is a folder', async () => {
    await rm(paths[0]!);
    await mkdir(paths[0]!);

    await expect(open()).rejects.toThrow(/^FILE_0: got .* \(EISDIR\), takes a file to read$/);
  });

  test('are an error of the parser if it rejects the content', async () => {
    await write('x');

    await expect(open()).rejects.toThrow('FILE_0: got an x, takes other letters');
  });
});

describe('files that are watched', () => {
  test('are reloaded when one of them changes, which is logged and reported once', async () => {
    const files = await open();
    await write('a', 'bb');
    await look(2);

    expect(files.current).toBe('abb');
    expect(heard).toEqual(['abb']);
    expect(told()).toEqual([reloaded(3)]);
  });

  test('are not reloaded when they are written again with the same content', async () => {
    const files = await open();
    await write('a', 'b');
    await files.check();

    expect(told()).toEqual([]);
  });

  test('are reloaded if a letter moves from one file to the next', async () => {
    await write('a', 'bc');
    const files = await open();
    await write('ab', 'c');
    await files.check();

    expect(told()).toEqual([reloaded(3)]);
  });

  test('keep their last valid value while they are invalid, which is logged once', async () => {
    const files = await open();
    await write('x');
    await look(2);
    expect(told()).toEqual([notReloaded('FILE_0: got an x, takes other letters')]);
    await write('xx');
    await files.check();
    expect(told()).toHaveLength(2);

    expect([files.current, heard]).toEqual(['ab', []]);
  });

  test('keep their last valid value while one is missing, which is logged once', async () => {
    const files = await open();
    await rm(paths[0]!);
    await look(2);

    expect(files.current).toBe('ab');
    const path = JSON.stringify(paths[0]);
    expect(told()).toEqual([notReloaded(`FILE_0: got ${path} (ENOENT), takes a file to read`)]);
  });

  test('are reloaded when they are valid again', async () => {
    const files = await open();
    await write('x');
    await files.check();
    await write('a', 'c');
    await files.check();

    expect(files.current).toBe('ac');
    expect(told()).toEqual([expect.anything(), reloaded(2)]);
  });

  test('are reloaded when a link above them is replaced, as Kubernetes does', async () => {
    const mount = join(folder, uniqueKey());
    for (const version of ['1', '2']) {
      await mkdir(join(mount, version), { recursive: true });
      await writeFile(join(mount, version, 'letters'), version);
    }
    await symlink('1', join(mount, '..data'));
    await symlink(join('..data', 'letters'), join(mount, 'letters'));
    paths[0] = join(mount, 'letters');
    const files = await open(1);
    expect(files.current).toBe('1b');
    await symlink('2', join(mount, '..new'));
    await rename(join(mount, '..new'), join(mount, '..data'));

    await until(() => files.current === '2b');
    expect(await readlink(paths[0])).toBe(join('..data', 'letters'));
  });

  test('are not reloaded after close', async () => {
    const files = await open();
    await write('c');
    const check = files.check();
    files.close();
    await check;

    expect([files.current, told()]).toEqual(['ab', []]);
  });
});

describe('files that must be there', () => {
  let files: WatchedFiles<string>;
  beforeEach(async () => {
    files = await open(ONE_HOUR, { whenGone: (last) => `-${last}` });
  });

  const state = (): unknown[] => [files.current, files.isStale, files.isGone];
  const gone = {
    level: 'error',
    msg: 'letters still missing or empty, none are in use until they are back',
  };
  const untilNextLook = (reason: string): object => ({
    ...notReloaded(reason),
    msg: 'letters not reloaded, the last good ones stay in use until the next look',
  });
  const missing = (): string =>
    `FILE_0: got ${JSON.stringify(paths[0])} (ENOENT), takes a file to read`;

  const WAYS: [string, () => Promise<void>][] = [
    ['is deleted', () => rm(paths[0]!)],
    ['is emptied', () => write('')],
    ['has nothing but blanks left', () => write(' \n')],
    [
      'is deleted, and then empty',
      async () => {
        await rm(paths[0]!);
        await files.check();
        await write('');
      },
    ],
  ];

  test.each(WAYS)('have no value from the second look on after one %s', async (_how, change) => {
    await change();
    await look(2);

    expect(state()).toEqual(['-ab', false, true]);
    expect(heard).toEqual(['-ab']);
    expect(told().filter((line) => 'msg' in line && line.msg === gone.msg)).toEqual([gone]);
  });

  test('are logged as missing at the first and second looks, and keep their value in between', async () => {
    await rm(paths[0]!);
    await files.check();
    expect(state()).toEqual(['ab', true, false]);
    expect(told()).toEqual([untilNextLook(missing())]);
    await look(3);

    expect(told()).toEqual([untilNextLook(missing()), gone]);
  });

  test('are an error when they are empty from the start', async () => {
    await write('');

    await expect(open(ONE_HOUR, { whenGone: (last) => `-${last}` })).rejects.toThrow(
      `FILE_0: got ${JSON.stringify(paths[0])} (empty), takes a file with content`,
    );
  });

  test('keep their value if they are missing for one look', async () => {
    await rm(paths[0]!);
    await files.check();
    await write('a');
    await files.check();
    expect(state()).toEqual(['ab', false, false]);
    await rm(paths[0]!);
    await files.check();

    expect(state()).toEqual(['ab', true, false]);
  });

  test('have no value until they are valid again', async () => {
    await rm(paths[0]!);
    await look(2);
    await write('x');
    await look(2);
    expect(state()).toEqual(['-ab', false, true]);
    expect(told().at(-1)).toEqual({
      ...notReloaded('FILE_0: got an x, takes other letters'),
      msg: 'letters not reloaded, none are in use',
    });
    await write('a');
    await files.check();

    expect(state()).toEqual(['ab', false, false]);
    expect(told().at(-1)).toEqual(reloaded(2));
  });

  test('keep their value while they are invalid in another way, for any number of looks', async () => {
    await write('x');
    await look(5);
    expect(state()).toEqual(['ab', true, false]);
    await rm(paths[0]!);
    await mkdir(paths[0]!);
    await look(5);

    expect(state()).toEqual(['ab', true, false]);
  });
});
