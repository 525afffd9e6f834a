import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { useTemporaryFolder } from '../temporary-folder.js';
import { type OwnApp, useApp } from '../use-apps.js';
import { readPage } from './pages.js';

/** The service of all tests of a file or a `describe`, with the rules that docs/recipes.md shows. */
export function useRecipesApp(): OwnApp {
  const file = join(useTemporaryFolder(), 'recipes.yaml');
  const [, rules = ''] =
    /^cat > recipes\.yaml <<'END'\n([\s\S]*?)^END$/m.exec(readPage('docs/recipes.md')) ?? [];
  writeFileSync(file, rules);
  return useApp(() => ({ CONFIG_FILE: file }));
}
