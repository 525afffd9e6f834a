import { existsSync, readdirSync } from 'node:fs';

import { readData, ROOT } from './repository-files.js';

interface Schedule {
  readonly interval: string;
}

interface Update {
  readonly 'package-ecosystem': string;
  readonly directory?: string;
  readonly directories?: readonly string[];
  readonly schedule?: Schedule;
  /** The group that combines updates of several ecosystems in one request, with its schedule. */
  readonly 'multi-ecosystem-group'?: string;
  readonly patterns?: readonly string[];
  readonly ignore?: readonly {
    readonly 'dependency-name': string;
    readonly 'update-types': readonly string[];
  }[];
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

/** By ecosystem: each folder of the update bot must have one of these files. */
const MANIFESTS: Readonly<Record<string, readonly string[]>> = {
  npm: ['package-lock.json'],
  pip: ['pyproject.toml', 'requirements.txt'],
  'github-actions': ['.github/workflows'],
  docker: ['Dockerfile', 'redis.yaml'],
  'docker-compose': ['docker-compose.yml'],
};

/** The folders of the project that have this file; `/` is the root. */
function foldersWith(file: string, folder = '/'): string[] {
  const entries = readdirSync(ROOT + folder, { withFileTypes: true });
  const below = entries
    .filter((entry) => entry.isDirectory() && !['.git', 'node_modules'].includes(entry.name))
    .flatMap(({ name }) => foldersWith(file, `${folder}${folder === '/' ? '' : '/'}${name}`));
  return entries.some(({ name }) => name === file) ? [folder, ...below] : below;
}

const FORMS = '.github/ISSUE_TEMPLATE/';

describe('the update bot', () => {
  const {
    version,
    updates,
    'multi-ecosystem-groups': shared,
  } = readData('.github/dependabot.yml') as {
    readonly version: number;
    readonly 'multi-ecosystem-groups': Readonly<Record<string, { readonly schedule: Schedule }>>;
    readonly updates: readonly Update[];
  };
  const foldersOf = ({ directory, directories }: Update) => directories ?? [directory ?? ''];

  test('covers packages, actions and images', () => {
    expect(version).toBe(2);
    expect(updates.map((update) => update['package-ecosystem'])).toEqual(Object.keys(MANIFESTS));
  });

  test('covers every package of npm', () => {
    expect(foldersOf(updates[0]!)).toEqual(foldersWith('package-lock.json').sort());
  });

  test.each(updates)('finds its files in each folder: $package-ecosystem', (update) => {
    const manifests = MANIFESTS[update['package-ecosystem']] ?? [];
    const empty = foldersOf(update).filter(
      (folder) => !manifests.some((file) => existsSync(`${ROOT}${folder}/${file}`)),
    );
    expect(empty).toEqual([]);
  });

  test.each(updates)('sends few requests, each of many updates: $package-ecosystem', (update) => {
    const { schedule, patterns, groups = {}, 'multi-ecosystem-group': group = '' } = update;
    expect((schedule ?? shared[group]?.schedule)?.interval).toBe('monthly');
    const inGroups = Object.values(groups).flatMap((one) => one.patterns);
    expect(patterns ?? inGroups).toEqual(['*']);
  });

  test('updates the Redis of all files in one request, only to patch versions', () => {
    const ofImages = updates.filter((update) => update['package-ecosystem'].startsWith('docker'));
    expect(ofImages.map((update) => update['multi-ecosystem-group'])).toEqual(['images', 'images']);
    for (const { ignore } of ofImages) {
      expect(ignore).toContainEqual({
        'dependency-name': 'redis',
        'update-types': ['version-update:semver-major', 'version-update:semver-minor'],
      });
    }
  });
});

describe('issues', () => {
  const files = readdirSync(ROOT + FORMS).filter((file) => file !== 'config.yml');

  test('need a form', () => {
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
