// Loaded before a replica: writes which CommonJS modules it has loaded by its end. Those of OpenTelemetry are such.
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { cache } = createRequire(import.meta.url);
process.on('exit', () => {
  writeFileSync(process.env.LOADED_MODULES_FILE, JSON.stringify(Object.keys(cache)));
});
