// The site of the pages: `npm run docs`. Its sidebar is by task. The pages stay where they are, and read well without it.
import { cpSync, existsSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vitepress';

import { SIDEBAR } from './sidebar.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** The addresses of pages outside of `docs`, all of which are in the site. */
const OTHER_PAGES = {
  'README.md': '/',
  'BENCHMARKS.md': '/benchmarks',
  'CHANGELOG.md': '/changelog',
  'CONTRIBUTING.md': '/contributing',
  'SECURITY.md': '/security-reports',
  'deploy/helm/sluice/README.md': '/chart',
};
/** The folder of the site with the files that pages link to, such as examples. */
const FILES = 'files';
const files = new Set();

/** The address of a page in the site, by its path from the root of the project. Undefined: it is none. */
function addressOf(path) {
  const inDocs = /^docs\/((?:adr\/)?[\w-]+)\.md$/.exec(path)?.[1];
  return inDocs ? `/${inDocs.replace(/\/README$/, '/')}` : OTHER_PAGES[path];
}

/** Has links lead to pages of the site, and to copies of the other files. Code is no template. */
function preparePages(markdown) {
  markdown.core.ruler.push('sluice', ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === 'code_inline') token.attrSet('v-pre', '');
      const href = token.type === 'link_open' ? token.attrGet('href') : undefined;
      if (!href || /^(?:\w+:|#|\/)/.test(href)) continue;
      const [path, anchor = ''] = href.split(/(?=#)/);
      const target = relative(ROOT, join(dirname(env.realPath ?? env.path), path));
      token.attrSet('href', `${addressOf(target) ?? fileAt(target)}${anchor}`);
    }
  });
}

function fileAt(path) {
  if (!existsSync(join(ROOT, path))) throw new Error(`a page links to ${path}, which is not there`);
  const isFolder = statSync(join(ROOT, path)).isDirectory();
  files.add(path);
  return `/${FILES}/${path}${isFolder ? '/' : ''}`;
}

/** What pages import is resolved as from here: they are outside of the folder with the packages. */
const packagesOfSite = {
  name: 'packages-of-site',
  enforce: 'pre',
  resolveId(source, importer, options) {
    if (!importer?.endsWith('.md') || !/^vue(?:\/|$)/.test(source)) return undefined;
    return this.resolve(source, fileURLToPath(import.meta.url), { ...options, skipSelf: true });
  },
};

export default defineConfig({
  title: 'Sluice',
  description: 'A rate limiter with a fair queue that all your processes share',
  lang: 'en',
  base: process.env.SITE_BASE ?? '/',
  srcDir: ROOT,
  srcExclude: [
    '**/{node_modules,dist,coverage,test,clients,k8s,bench,.github}/**',
    'docs/{site,examples}/**',
    'deploy/**/!(README).md',
  ],
  outDir: 'dist',
  cacheDir: 'node_modules/.cache/vitepress',
  cleanUrls: true,
  rewrites: (path) => {
    const address = addressOf(path) ?? `/${path}`;
    return `${address.slice(1)}${address.endsWith('/') ? 'index' : ''}`.replace(/(\.md)?$/, '.md');
  },
  // Where a reader's own service answers, and the copies of files.
  ignoreDeadLinks: [/^https?:\/\/localhost\b/, new RegExp(`^/${FILES}/`)],
  markdown: { config: preparePages },
  // The pages are outside of the folder with the packages.
  vite: { plugins: [packagesOfSite] },
  buildEnd: ({ outDir }) => {
    for (const path of files) {
      cpSync(join(ROOT, path), join(outDir, FILES, path), {
        recursive: true,
        filter: (source) => !/\/(?:node_modules|dist|__pycache__)(?:\/|$)/.test(source),
      });
    }
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: SIDEBAR,
    nav: [
      { text: 'Guides', link: '/choose-the-limit' },
      { text: 'API', link: '/checks' },
      { text: 'Changes', link: '/changelog' },
    ],
  },
});
