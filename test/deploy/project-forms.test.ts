import { existsSync, readdirSync } from 'node:fs';

import { readData, ROOT } from './repository-files.js';

interface Update {
  readonly 'package-ecosystem': string;
  readonly directory?: string;
  readonly directories?: readonly string[];
  readonly schedule: { readonly interval: string };
  readonly groups?: Readonly<Record<string, { readonly patterns: readonly string[] }>>;
}

interface IssueForm {
  readonly name: string;
  readonly description: string;
  readonly body: readonly {
    readonly type: string;
    readonly id?: string;
    readonly attributes: { readonly label?: string; readonly value?: string };
  }[];
}

/** One of these files has to be in a folder that the update bot looks into. */
const MANIFESTS: Readonly<Record<string, readonly string[]>> = {
  npm: ['package-lock.json'],
  'github-actions': ['.github/workflows'],
  docker: ['Dockerfile', 'redis.yaml'],
  'docker-compose': ['docker-compose.yml'],
};

/** Folders of the project that have this file, from its root `/` on. */
function foldersWith(file: string, folder = '/'): string[] {
  const entries = readdirSync(ROOT + folder, { withFileTypes: true });
  const below = entries
    .filter((entry) => entry.isDirectory() && !['.git', 'node_modules'].includes(entry.name))
    .flatMap(({ name }) => foldersWith(file, `${folder}${folder === '/' ? '' : '/'}${name}`));
  return entries.some(({ name }) => name === file) ? [folder, ...below] : below;
}

const FORMS = '.github/ISSUE_TEMPLATE/';

describe('the update bot', () => {
  const { version, updates } = readData('.github/dependabot.yml') as {
    readonly version: number;
    readonly updates: readonly Update[];
  };
  const foldersOf = ({ directory, directories }: Update) => directories ?? [directory ?? ''];

  test('looks after packages, actions and images', () => {
    expect(version).toBe(2);
    expect(updates.map((update) => update['package-ecosystem'])).toEqual(Object.keys(MANIFESTS));
  });

  test('looks after every package of npm', () => {
    expect(foldersOf(updates[0]!)).toEqual(foldersWith('package-lock.json').sort());
  });

  test.each(updates)('finds what it looks for: $package-ecosystem', (update) => {
    const manifests = MANIFESTS[update['package-ecosystem']] ?? [];
    const empty = foldersOf(update).filter(
      (folder) => !manifests.some((file) => existsSync(`${ROOT}${folder}/${file}`)),
    );
    expect(empty).toEqual([]);
  });

  test.each(updates)('sends few requests, each of many updates: $package-ecosystem', (update) => {
    expect(update.schedule.interval).toBe('monthly');
    const patterns = Object.values(update.groups ?? {}).flatMap((group) => group.patterns);
    expect(patterns).toEqual(['*']);
  });
});

describe('issues', () => {
  const files = readdirSync(ROOT + FORMS).filter((file) => file !== 'config.yml');

  test('are written with a form', () => {
    expect(readData(`${FORMS}config.yml`)).toEqual({ blank_issues_enabled: false });
    expect(files).toEqual(['bug.yml', 'question.yml']);
  });

  test.each(files)('the form %s has what GitHub requires', (file) => {
    const form = readData(FORMS + file) as IssueForm;
    expect(form.name).toMatch(/./);
    expect(form.description).toMatch(/./);

    const questions = form.body.filter(({ type }) => type !== 'markdown');
    const texts = form.body.filter(({ type }) => type === 'markdown');
    for (const { type, attributes } of questions) {
      expect(['textarea', 'input', 'dropdown', 'checkboxes']).toContain(type);
      expect(attributes.label).toMatch(/./);
    }
    for (const { attributes } of texts) expect(attributes.value).toMatch(/./);
    const ids = questions.map(({ id = '' }) => id);
    expect(ids.filter((id) => !/^[\w-]+$/.test(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBeGreaterThan(0);
  });
});
