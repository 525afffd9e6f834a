import { existsSync, readdirSync } from 'node:fs';

import { readData, ROOT } from './repository-files.js';

interface Update {
  readonly 'package-ecosystem': string;
  readonly directory?: string;
  readonly directories?: readonly string[];
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

describe('the update bot', () => {
  const { version, updates } = readData('.github/dependabot.yml') as {
    readonly version: number;
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
});
