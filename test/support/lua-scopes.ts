import { parse } from 'luaparse';

/** A local variable or a parameter. */
export interface LuaVariable {
  readonly name: string;
  /** Of its declaration. */
  readonly line: number;
  readonly of: LuaFunction;
  isUsed: boolean;
}

/** A function, or the text outside of functions. */
export interface LuaFunction {
  readonly line: number;
  /** All of its local variables and parameters. */
  readonly locals: LuaVariable[];
  /** The variables of outer functions that it or a function in it uses. */
  readonly upvalues: Set<LuaVariable>;
}

export interface LuaScopes {
  /** The text outside of functions comes first. */
  readonly functions: readonly LuaFunction[];
  /** The names that are used and declared nowhere. */
  readonly globals: ReadonlySet<string>;
  /** The variables that hide one of an outer function or block. */
  readonly hiding: readonly LuaVariable[];
}

/** What this needs of the nodes of luaparse: https://fstirlitz.github.io/luaparse/ */
interface Node {
  readonly type: string;
  readonly loc?: { readonly start: { readonly line: number } };
  readonly [part: string]: unknown;
}

/** Where variables are declared: a function or a block in it. */
interface Block {
  readonly of: LuaFunction;
  readonly names: Map<string, LuaVariable>;
  readonly outer: Block | undefined;
}

/** Finds out where each name of a Lua 5.1 text is declared. @throws SyntaxError if it is no Lua */
export function luaScopes(text: string): LuaScopes {
  const functions: LuaFunction[] = [];
  const globals = new Set<string>();
  const hiding: LuaVariable[] = [];

  const find = (name: string, block: Block | undefined): LuaVariable | undefined =>
    block && (block.names.get(name) ?? find(name, block.outer));

  const beginFunction = (line: number, outer?: Block): Block => {
    const of = { line, locals: [], upvalues: new Set<LuaVariable>() };
    functions.push(of);
    return { of, names: new Map(), outer };
  };

  const declare = (block: Block, name: string, line: number): void => {
    const variable = { name, line, of: block.of, isUsed: false };
    if (name !== '_' && find(name, block)) hiding.push(variable);
    block.of.locals.push(variable);
    block.names.set(name, variable);
  };

  const use = (block: Block, name: string): void => {
    const variable = find(name, block);
    if (!variable) {
      globals.add(name);
      return;
    }
    variable.isUsed = true;
    for (let at: Block | undefined = block; at && at.of !== variable.of; at = at.outer) {
      at.of.upvalues.add(variable);
    }
  };

  const visitAll = (nodes: unknown, block: Block): void => {
    for (const node of nodes as readonly Node[]) visit(node, block);
  };
  const inBlock = (body: unknown, outer: Block, names: readonly Node[] = []): void => {
    const block = { of: outer.of, names: new Map<string, LuaVariable>(), outer };
    for (const variable of names) declareNode(block, variable);
    visitAll(body, block);
  };
  const declareNode = (block: Block, node: Node): void => {
    if (node.type === 'Identifier') declare(block, node.name as string, lineOf(node));
  };

  const visit = (node: Node, block: Block): void => {
    switch (node.type) {
      case 'Identifier':
        use(block, node.name as string);
        return;
      case 'LocalStatement':
        visitAll(node.init, block);
        for (const variable of node.variables as Node[]) declareNode(block, variable);
        return;
      case 'FunctionDeclaration': {
        const identifier = node.identifier as Node | null;
        if (node.isLocal === true && identifier) declareNode(block, identifier);
        else if (identifier) visit(identifier, block);
        const inside = beginFunction(lineOf(node), block);
        if (identifier?.indexer === ':') declare(inside, 'self', lineOf(node));
        for (const parameter of node.parameters as Node[]) declareNode(inside, parameter);
        visitAll(node.body, inside);
        return;
      }
      case 'ForNumericStatement':
        for (const part of [node.start, node.end, node.step]) if (part) visit(part as Node, block);
        inBlock(node.body, block, [node.variable as Node]);
        return;
      case 'ForGenericStatement':
        visitAll(node.iterators, block);
        inBlock(node.body, block, node.variables as Node[]);
        return;
      case 'WhileStatement':
      case 'IfClause':
      case 'ElseifClause':
        visit(node.condition as Node, block);
        inBlock(node.body, block);
        return;
      case 'ElseClause':
      case 'DoStatement':
        inBlock(node.body, block);
        return;
      case 'MemberExpression':
        visit(node.base as Node, block);
        return;
      case 'TableKeyString':
        visit(node.value as Node, block);
        return;
      case 'RepeatStatement':
        throw new Error('repeat is not known here');
      default:
        for (const part of Object.values(node)) {
          if (Array.isArray(part)) visitAll(part, block);
          else if (isNode(part)) visit(part, block);
        }
    }
  };

  const outside = beginFunction(1);
  visitAll((parse(text, { luaVersion: '5.1', locations: true }) as unknown as Node).body, outside);
  return { functions, globals, hiding };
}

function isNode(part: unknown): part is Node {
  return typeof part === 'object' && part !== null && 'type' in part;
}

function lineOf(node: Node): number {
  return node.loc?.start.line ?? 0;
}
