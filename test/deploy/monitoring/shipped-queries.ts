import { parse } from 'yaml';

import { readText } from '../repository-files.js';

export const RULES_FILE = 'deploy/helm/sluice/files/prometheus-rules.yaml';
const DASHBOARD_FILE = 'deploy/helm/sluice/files/grafana-dashboard.json';

/** An alert in Prometheus's form. */
export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

/** A query of the dashboard. */
export interface PanelQuery {
  readonly panel: string;
  readonly expr: string;
}

/** A variable of the dashboard. */
export interface Variable {
  readonly name: string;
  readonly type: string;
  readonly allValue?: string;
  readonly query: string | { readonly query: string };
}

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string }[];
}

/** The dashboard file that Grafana reads. */
export interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
}

export const dashboard = JSON.parse(readText(DASHBOARD_FILE)) as Dashboard;

export const panelQueries: readonly PanelQuery[] = dashboard.panels.flatMap(
  ({ title, targets = [] }) => targets.map(({ expr }) => ({ panel: title, expr })),
);

export const alerts: readonly Alert[] = (
  parse(readText(RULES_FILE)) as {
    readonly groups: readonly { readonly rules: readonly Alert[] }[];
  }
).groups.flatMap(({ rules }) => rules);
