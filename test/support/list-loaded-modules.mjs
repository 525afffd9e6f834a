// Preloaded into a replica: lists at its end the CommonJS modules that it has loaded, such as OpenTelemetry's.
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { cache } = createRequire(import.meta.url);
process.on('exit', () => {
  writeFileSync(process.env.LOADED_MODULES_FILE, JSON.stringify(Object.keys(cache)));
});
