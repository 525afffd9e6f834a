import { ratePath, send } from '../../support/http-client.js';
import { bearer } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import { useApp } from '../../support/use-apps.js';
import { unfold, untilListed, untilText } from './seen.js';
import type { Open } from './use-browser.js';

const OWNER = {
  name: 'owner',
  token: 'token-for-everything',
  scopes: ['check', 'release', 'debug'],
};
const OPERATOR = {
  name: 'operator',
  token: 'token-of-the-operator',
  scopes: ['check', 'configure', 'debug'],
};
const SEER = { name: 'seer', token: 'token-to-look-only', scopes: ['debug'] };
const CHECKER = { name: 'checker', token: 'token-to-check-only', scopes: ['check'] };

export function describeTokens(open: Open): void {
  describe('the dashboard behind tokens', () => {
    const app = useApp(() => ({ MAX_REQUESTS: '1', WINDOW_MILLIS: '3600000' }), {
      tokens: [OWNER, OPERATOR, SEER, CHECKER],
    });
    beforeEach(async () => {
      await send(app.url, 'POST', ratePath('job'), bearer(OWNER));
      await send(app.url, 'POST', ratePath('job'), bearer(OWNER));
    });

    test('asks for a token, says what is wrong with it, and shows nothing before', async () => {
      const { page, requests } = await open(`${app.url}/ui`);
      await untilText(page, '#token-problem', 'a bearer token is required');
      expect(await page.locator('#page').isVisible()).toBe(false);
      for (const [token, problem] of [
        ['token-of-nobody', 'unknown token'],
        [CHECKER.token, 'the token lacks the scope debug'],
      ] as const) {
        await page.getByLabel('Bearer token').fill(token);
        await page.getByRole('button', { name: 'Continue' }).click();
        await untilText(page, '#token-problem', problem);
      }
      await page.getByLabel('Bearer token').fill(SEER.token);
      await page.keyboard.press('Enter');
      await untilListed(page, ['job']);
      await untilText(page, '#keys', 'last by owner');
      expect(requests.join('\n')).not.toContain('token-');
    });

    test('keeps the token in memory only: nothing is stored, and a reload forgets it', async () => {
      const { page } = await open(`${app.url}/ui`);
      await page.getByLabel('Bearer token').fill(OWNER.token);
      await page.keyboard.press('Enter');
      await untilListed(page, ['job']);

      expect(await page.context().storageState({ indexedDB: true })).toEqual({
        cookies: [],
        origins: [],
      });
      const kept = '[localStorage.length, sessionStorage.length, document.cookie, location.href]';
      expect(await page.evaluate(kept)).toEqual([0, 0, '', `${app.url}/ui`]);
      expect(await page.content()).not.toContain(OWNER.token);
      expect(await page.locator('#token').inputValue()).toBe('');
      await page.reload();
      await untilText(page, '#token-problem', 'a bearer token is required');
    });

    test('forgets the token on request', async () => {
      const { page, requests } = await open(`${app.url}/ui`);
      await page.getByLabel('Bearer token').fill(OWNER.token);
      await page.keyboard.press('Enter');
      await untilListed(page, ['job']);
      await page.getByRole('button', { name: 'Forget token' }).click();
      await page.getByLabel('Bearer token').waitFor();
      expect(await page.locator('#page').isVisible()).toBe(false);

      const before = requests.length;
      await page.getByLabel('Bearer token').fill(SEER.token);
      await page.keyboard.press('Enter');
      await until(() => requests.length > before);
      await untilListed(page, ['job']);
    });

    test('offers only what the scopes allow, and says which scopes the rest takes', async () => {
      await send(
        app.url,
        'POST',
        `${ratePath('held')}?holdMillis=600000&holder=ci-7`,
        bearer(OWNER),
      );
      const { page } = await open(`${app.url}/ui#key=held`);
      await page.getByLabel('Bearer token').fill(SEER.token);
      await page.keyboard.press('Enter');
      await untilText(page, '#rights', 'ending holds takes configure');
      await unfold(page, 'Try a check');

      for (const name of ['End hold of ci-7', 'Pause key', 'Check', 'Check and wait']) {
        expect(await page.getByRole('button', { name, exact: true }).isDisabled()).toBe(true);
      }
      await page.getByRole('button', { name: 'Forget token' }).click();
      await page.getByLabel('Bearer token').fill(OPERATOR.token);
      await page.keyboard.press('Enter');
      await page.locator('#rights').waitFor({ state: 'hidden' });
      expect(await page.getByRole('button', { name: 'End hold of ci-7' }).isEnabled()).toBe(true);
    });
  });
}
