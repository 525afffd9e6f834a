import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { SECRETS } from '../../../src/config/secret-files.js';
import { parseSettings, settingsSchema } from '../../../src/config/settings.js';
import { DEFAULTS, type Environment, refusal, refusalAsLogged } from '../../support/settings.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';

const folder = useTemporaryFolder();

/** The path of a new file. */
function fileWith(content: string | Buffer): string {
  const path = join(folder, uniqueKey());
  writeFileSync(path, content);
  return path;
}

/** A valid value of each secret. */
const SECRET = 'redis://user:pa55word@localhost';

describe.each(SECRETS)('%s', (name) => {
  const variable = `${name}_FILE`;
  const taken = (value: string, path: string): unknown => ({
    ...DEFAULTS,
    [name]: name === 'REDIS_URL' ? [value] : value,
    secretFiles: { [name]: path },
  });

  test('is a setting', () => {
    expect(Object.keys(settingsSchema.shape)).toContain(name);
  });

  test.each([
    ['nothing', ''],
    ['a line feed', '\n'],
    ['a carriage return and a line feed', '\r\n'],
  ])('comes from a file that ends with %s', (_what, end) => {
    const path = fileWith(SECRET + end);

    expect(parseSettings({ [variable]: path })).toStrictEqual(taken(SECRET, path));
  });

  test('comes from a file if its own variable is empty', () => {
    const environment = { [name]: '', [variable]: fileWith(SECRET) };

    expect(parseSettings(environment)).toStrictEqual(taken(SECRET, environment[variable]!));
  });

  test('comes from no file if the name of the file is empty', () => {
    expect(parseSettings({ [variable]: '' })).toStrictEqual(DEFAULTS);
  });

  test('is rejected if both the variable and the file are set', () => {
    const path = fileWith(SECRET);
    const environment = { [name]: SECRET, [variable]: path };

    expect(refusal(environment)).toBe(
      `${variable}: got "${path}", takes nothing if ${name} is set`,
    );
    expect(refusalAsLogged(environment)).not.toContain('pa55word');
  });

  test.each([
    ['is not there', 'ENOENT', () => join(folder, uniqueKey())],
    ['is a folder', 'EISDIR', () => folder],
    ['is below a file', 'ENOTDIR', () => join(fileWith('x'), 'x')],
  ])('is rejected with a file that %s', (_what, code, path) => {
    const given = path();

    expect(refusal({ [variable]: given })).toBe(
      `${variable}: got "${given}" (${code}), takes a file to read`,
    );
  });

  test.each(['', '\n', '\r\n'])('is rejected with a file that has only %j', (content) => {
    const path = fileWith(content);

    expect(refusal({ [variable]: path })).toBe(
      `${variable}: got "${path}" (empty), takes a file with the secret`,
    );
  });
});

test('only the last line break of a file is left out of the secret', () => {
  const settings = parseSettings({ REDIS_PASSWORD_FILE: fileWith(' secret \n\n') });

  expect(settings.REDIS_PASSWORD).toBe(' secret \n');
});

test('only secrets come from files', () => {
  expect(parseSettings({ PORT_FILE: fileWith('1'), HOST_FILE: fileWith('x') })).toEqual(DEFAULTS);
});

test('a wrong value from a file is not shown', () => {
  const environment = { REDIS_URL_FILE: fileWith('http://:pa55word@localhost\n') };

  expect(refusal(environment)).toMatch(/^REDIS_URL: got a value that is not shown, takes a URL/);
  expect(refusalAsLogged(environment)).not.toContain('pa55word');
});

const REFUSED: [what: string, environment: Environment][] = [
  ['a wrong number', { PORT: 'x' }],
  ['a mode that needs more', { REDIS_MODE: 'sentinel' }],
  ['several URLs of one Redis', { REDIS_URL: `${SECRET},${SECRET}` }],
  ['no database as the path', { REDIS_URL: `${SECRET}/x` }],
  ['a URL with a database in a cluster', { REDIS_URL: `${SECRET}/1`, REDIS_MODE: 'cluster' }],
  ['two protocols', { REDIS_URL: `${SECRET},rediss://b`, REDIS_MODE: 'cluster' }],
  ['TLS without rediss://', { REDIS_TLS_SERVER_NAME: 'redis' }],
];

test.each(REFUSED)('the error for %s shows no secret', (_what, environment) => {
  const secrets = Object.fromEntries(SECRETS.map((name) => [name, SECRET]));

  expect(refusalAsLogged({ ...secrets, ...environment })).not.toContain('pa55word');
});
