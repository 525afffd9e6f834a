import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { useTemporaryFolder } from '../temporary-folder.js';
import { type OwnApp, useApp } from '../use-apps.js';
import { readPage } from './pages.js';
import { shellBlocks } from './shell-blocks.js';

export const GUIDES = [
  'docs/jobs-and-ci.md',
  'docs/llm-apis.md',
  'docs/llm-sdks.md',
  'docs/vendor-apis.md',
  'docs/users-and-tenants.md',
  'docs/web-frameworks.md',
];

const RULES = /^cat > "\$rules" <<'END'\nkeys:\n([\s\S]*?)^END$/m;

/**
 * The service of all tests of a file or a `describe`, with the rules that the guides show.
 * @param change makes other rules of them
 */
export function useGuidesApp(change = (rules: string): string => rules): OwnApp {
  const file = join(useTemporaryFolder(), 'rules.yaml');
  const rules = GUIDES.map((page) => RULES.exec(readPage(page))?.[1] ?? '');
  writeFileSync(file, change(['keys:\n', ...rules].join('')));
  return useApp(() => ({ CONFIG_FILE: file }));
}

/** The blocks with commands of all guides. */
export const guideBlocks = () => GUIDES.flatMap((page) => shellBlocks(page));
