import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { parse } from 'yaml';

import { useTemporaryFolder } from '../support/temporary-folder.js';
import { actionlint, describeWithActionlint } from './actionlint.js';
import { readManifest, readText, ROOT } from './repository-files.js';
import { readWorkflow, requiredBy, stepsOf, type Workflow, WORKFLOWS } from './workflow.js';

/** A script of the project in a command. Other commands, such as `npm ci`, are npm's own. */
const NPM_SCRIPT = /\bnpm (?:run )?(test|(?<=run )[\w:-]+)\b/g;
const TEST_PATH = /\btest\/[\w./-]+/g;
const COMMIT = /^[\w-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/;

const ci = readWorkflow('.github/workflows/ci.yml');
const long = readWorkflow('.github/workflows/long.yml');
const release = readWorkflow('.github/workflows/release.yml');

function inputsOf(workflow: Workflow, action: string): Readonly<Record<string, unknown>> {
  const step = stepsOf(workflow).find(({ uses = '' }) => uses.startsWith(`${action}@`));
  if (step?.with === undefined) throw new Error(`no step gives inputs to ${action}`);
  return step.with;
}

describeWithActionlint('actionlint', () => {
  const folder = useTemporaryFolder();

  test('finds nothing wrong with the workflows', () => {
    expect(actionlint(...WORKFLOWS)).toBe('');
  });

  test('finds nothing wrong with the workflow of a guide', () => {
    const [, text = ''] =
      /^```yaml\n(name: [\s\S]*?)^```$/m.exec(readText('docs/jobs-and-ci.md')) ?? [];
    const file = join(folder, 'recipe.yml');
    writeFileSync(file, text);

    expect(text).toContain('sluice-client run');
    expect(actionlint(file)).toBe('');
  });

  test('finds faults', () => {
    const file = join(folder, 'wrong.yml');
    writeFileSync(file, readText('.github/workflows/long.yml').replace('matrix.node }}', 'nod }}'));
    expect(actionlint(file)).toContain('undefined variable "nod"');
  });
});

describe.each(WORKFLOWS)('%s', (path) => {
  const workflow = readWorkflow(path);
  const jobs = Object.entries(workflow.jobs);

  test('has write permissions only in jobs that declare them', () => {
    expect([{}, { contents: 'read' }]).toContainEqual(workflow.permissions);
  });

  test('has a time limit for every job', () => {
    const endless = jobs.filter(([, job]) => !job.uses && !job['timeout-minutes']);
    expect(endless.map(([name]) => name)).toEqual([]);
  });

  test('pins every action by its commit, with the version in a comment', () => {
    const uses = [...readText(path).matchAll(/uses: (?!\.\/)(.*)/g)].map(([, use]) => use!);
    expect(uses.length).toBeGreaterThan(0);
    expect(uses.filter((use) => !COMMIT.test(use))).toEqual([]);
  });

  test('names only existing scripts and tests', () => {
    const { scripts } = readManifest();
    const runs = stepsOf(workflow).map(({ run = '' }) => run);
    const named = runs.flatMap((run) => [...run.matchAll(NPM_SCRIPT)].map(([, name = '']) => name));
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
    const folders = readText(path).match(TEST_PATH) ?? [];
    expect(folders.filter((folder) => !existsSync(ROOT + folder))).toEqual([]);
  });
});

test('an action has the same commit in all workflows', () => {
  const uses = WORKFLOWS.flatMap((path) => [...readText(path).matchAll(/uses: (?!\.\/)(.*)/g)]);
  const commits = new Set(uses.map(([, use]) => use));
  const actions = new Set(uses.map(([, use]) => use!.split('@')[0]));
  expect(commits.size).toBe(actions.size);
});

test('workflows that call each other do not wait for each other', () => {
  const groups = WORKFLOWS.map((path) => readWorkflow(path).concurrency?.group);
  expect(groups).toEqual(groups.map(() => expect.not.stringContaining('workflow') as unknown));
  expect(new Set(groups).size).toBe(groups.length);
});

describe('the continuous integration', () => {
  test('runs the command of the README, by .ci/run', () => {
    expect(ci.jobs.ci?.steps).toContainEqual({ run: '.ci/run' });
    expect(readText('.ci/run')).toMatch(/^on shipped npm test$/m);
    expect(readText('README.md')).toMatch(/^npm test /m);
  });

  test('tests the oldest supported Node each night, and the Node of the image', () => {
    const versions = long.jobs.node?.strategy?.matrix.node as (string | number)[];
    const [, oldest] = /^>=(\d+\.\d+)$/.exec(readManifest().engines.node)!;
    const [, inImage] = /\bnode:(\d+)\./.exec(readText('Dockerfile'))!;
    expect(versions[0]).toBe(oldest);
    expect(versions).toContain(Number(inImage));
    expect(readText('docs/versions.md')).toContain(
      `${inImage} LTS, which the image has; ${oldest} `,
    );
  });

  test('runs each random tester and the mutations each night', () => {
    const tests = long.jobs.random?.strategy?.matrix.test as string[];
    const scripts = new Set(tests.map((command) => command.split(' ')[0]!));
    const others = ['test', 'test:one', 'test:unit', 'test:deploy', 'test:long'];
    expect([...scripts, ...others].sort()).toEqual(
      Object.keys(readManifest().scripts)
        .filter((name) => /^test\b/.test(name))
        .sort(),
    );
  });

  test('tests the oldest supported Redis, later ones, and Valkey', () => {
    const included = long.jobs.redis?.strategy?.matrix.include as {
      image: string;
      form?: 'script';
    }[];
    expect(readText('docs/versions.md')).toContain('Redis 6.2 or newer');
    // Before 7.0 there are no functions.
    expect(included.map(({ image, form }) => (form ? `${image}, scripts` : image))).toEqual([
      'redis:6.2, scripts',
      'redis:7.2',
      'redis:7.2, scripts',
      'redis:8',
      'valkey/valkey:8',
    ]);
  });
});

describe('a release', () => {
  const folder = useTemporaryFolder();

  test.each(['image', 'files', 'site'])('makes its %s after all tests', (job) => {
    expect(requiredBy(release, job)).toEqual(
      expect.arrayContaining(['version', 'test', 'last-night']),
    );
    expect(release.jobs.test?.uses).toBe('./.github/workflows/ci.yml');
  });

  test.each([
    ['last night without a failure', 'success', 1, 0],
    ['that failed', 'failure', 1, 1],
    ['of last week', 'success', 7 * 24, 1],
  ])('needs a run of everything: one %s', (_when, conclusion, hours, code) => {
    const step = release.jobs['last-night']!.steps!.find(({ run }) => run)!;
    const createdAt = new Date(Date.now() - hours * 3_600_000).toISOString().replace(/\.\d+/, '');
    const gh = `gh() { echo '${JSON.stringify([{ conclusion, createdAt }])}'; }`;
    const { status } = spawnSync('bash', ['-e', '-o', 'pipefail', '-c', `${gh}\n${step.run!}`]);
    expect(status).toBe(code);
  });

  test('has an image for two platforms, with its SBOM and provenance', () => {
    expect(inputsOf(release, 'docker/build-push-action')).toMatchObject({
      platforms: 'linux/amd64,linux/arm64',
      push: "${{ github.ref_type == 'tag' }}",
      sbom: true,
      provenance: 'mode=max',
    });
    expect(inputsOf(release, 'docker/metadata-action')).toMatchObject({
      images: 'ghcr.io/${{ github.repository }}',
    });
  });

  test('has a chart with the image that is pushed', () => {
    const step = release.jobs.files!.steps!.find(({ name = '' }) => name.includes('image'))!;
    cpSync(`${ROOT}deploy`, join(folder, 'deploy'), { recursive: true });
    expect(step.env).toEqual({ DIGEST: '${{ needs.image.outputs.digest }}' });
    expect(release.jobs.image!.outputs).toEqual({ digest: '${{ steps.push.outputs.digest }}' });
    const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;
    const environment = { ...process.env, GITHUB_REPOSITORY: 'Some/Sluice', DIGEST };
    execFileSync('bash', ['-e', '-c', step.run!], { cwd: folder, env: environment });

    const values = readFileSync(join(folder, 'deploy/helm/sluice/values.yaml'), 'utf8');
    expect(parse(values)).toMatchObject({
      image: { repository: 'ghcr.io/some/sluice', tag: '', digest: DIGEST },
    });
  });

  test.each([
    ['image', { 'subject-digest': '${{ steps.push.outputs.digest }}' }],
    ['files', { 'subject-checksums': 'release/SHA256SUMS' }],
  ])('signs the provenance of its %s', (job, subject) => {
    const steps = release.jobs[job]!.steps!;
    const attest = steps.findIndex(({ uses = '' }) => uses.startsWith('actions/attest@'));
    expect(steps[attest]!.with).toMatchObject(subject);
    const makes = steps.findIndex(
      ({ id, run = '' }) => id === 'push' || run.includes('release:files'),
    );
    expect(makes).toBeLessThan(attest);
  });

  test('run by hand, publishes nothing', () => {
    const publishing =
      /\b(?:helm push|gh release create|npm publish)\b|docker\/login-action|deploy-pages/;
    const ofTags = "github.ref_type == 'tag'";
    const publishes = Object.values(release.jobs).flatMap((job) =>
      (job.steps ?? [])
        .filter(({ run = '', uses = '' }) => publishing.test(`${run} ${uses}`))
        .map((step) => step.if ?? job.if),
    );
    expect(publishes).toEqual(Array(4).fill(ofTags));
  });

  test('gives each job only the write permissions that it needs', () => {
    const permissions = Object.entries(release.jobs).map(([name, job]) => [name, job.permissions]);
    const pushing = {
      contents: 'read',
      packages: 'write',
      'id-token': 'write',
      attestations: 'write',
    };
    expect(Object.fromEntries(permissions)).toEqual({
      version: { contents: 'read' },
      test: { contents: 'read' },
      'last-night': { actions: 'read', contents: 'read' },
      image: pushing,
      files: { ...pushing, contents: 'write' },
      site: { contents: 'read', pages: 'write', 'id-token': 'write' },
    });
  });

  test('is rejected if its tag is not the version of everything that it publishes', () => {
    const script = '.github/scripts/check-version.mjs';
    expect(stepsOf(release)).toContainEqual({
      run: `node ${script} "$GITHUB_REF_NAME"`,
      if: "github.ref_type == 'tag'",
    });
    const check = (tag: string) =>
      spawnSync(process.execPath, [ROOT + script, tag], { encoding: 'utf8' });

    const { version } = readManifest();
    expect(check(`v${version}`)).toMatchObject({ status: 0, stderr: '' });
    const refused = check(`v${version}-rc.1`);
    expect(refused.status).toBe(1);
    expect(refused.stderr.trim().split('\n')).toEqual(
      [
        'package.json',
        'clients/node/package.json',
        'clients/python/pyproject.toml',
        'clients/go/cmd/sluice-client/main.go',
        'package-lock.json',
        'version of deploy/helm/sluice/Chart.yaml',
        'appVersion of deploy/helm/sluice/Chart.yaml',
        'label of the Dockerfile',
      ].map((place) => `${place}: ${version}, but the tag is v${version}-rc.1`),
    );
  });
});
