import { type Command, CommandLineError, helpText, parseCommandLine } from './app/command-line.js';
import { runRulesCommand } from './app/rules-command.js';
import { packageVersion } from './common/texts.js';
import { createObjectsYoung } from './common/young-objects.js';
import { parseSettings } from './config/settings.js';
import { SettingsError } from './config/named-file.js';
import { RulesError, RulesErrors } from './rules/positioned-yaml.js';

async function main(): Promise<void> {
  const command = parseCommandLine(process.argv.slice(2));
  if (command.name !== 'serve') {
    process.stdout.write(`${await answerTo(command)}\n`);
    return;
  }
  createObjectsYoung();
  const settings = parseSettings(process.env);
  // Loading the service takes most of its start. Neither commands nor wrong settings need it.
  const { serve } = await import('./app/serve.js');
  await serve(settings);
}

/** What a command prints that is not the service. Help needs no valid settings. */
async function answerTo(command: Exclude<Command, { name: 'serve' }>): Promise<string> {
  if (command.name === 'help') return helpText();
  if (command.name === 'version') return packageVersion();
  if (command.name === 'import') {
    // Other commands need no parts of gRPC.
    const { runImportCommand } = await import('./app/import-command.js');
    const { text, warnings } = runImportCommand(command.files);
    for (const warning of warnings) console.error(warning);
    return text.trimEnd();
  }
  return runRulesCommand(command, parseSettings(process.env));
}

try {
  await main();
} catch (error) {
  // An error of the settings or of the machine needs no stack; an error of the program does.
  const needsNoStack =
    error instanceof SettingsError ||
    error instanceof RulesError ||
    error instanceof RulesErrors ||
    error instanceof CommandLineError ||
    (error as { syscall?: string }).syscall;
  console.error(needsNoStack ? (error as Error).message : error);
  process.exit(1);
}
