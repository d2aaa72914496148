// From a repository's name to files in the cache: the real client of the hub talks to a hub on loopback.
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { inspect } from 'node:util';
import t, { type Test } from 'tap';
import { bytesOf, Caller, contentsOf, entriesBelow, failureOf } from './support/hub.js';
import { type Answer, etagOf, HubServer, type Request, sha256 } from './support/hub-server.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const repo = 'fx/a';
const token = 'hf_WouldBeATokenIfItWereOne';

const train = bytesOf(70_000, 1);
const test = bytesOf(3_000, 2);
const readme = '---\ndataset_info:\n  features:\n  - {name: a, dtype: int8}\n---\n';
const small = {
  'README.md': readme,
  'data/train-00000-of-00001.parquet': train,
  'data/test-00000-of-00001.parquet': test,
};
const smallContents = {
  train: { 'data/train-00000-of-00001.parquet': sha256(train) },
  test: { 'data/test-00000-of-00001.parquet': sha256(test) },
};

/** A server with one dataset, and a caller. */
async function begin(t: Test, options?: Parameters<typeof HubServer.start>[1]) {
  const server = await HubServer.start(t, options);
  const commit = server.commit(repo, 'main', small);
  return { server, commit, caller: new Caller(scratch, server) };
}

const questions = (requests: readonly Request[]): string[] =>
  requests.map(({ method, url }) => `${method} ${url.split('?')[0]}`);

t.test('what the cache holds afterwards, and what was asked', async (t) => {
  const { server, commit, caller } = await begin(t);
  const progress: number[][] = [];
  const files = await caller.load(repo, {
    onProgress: ({ filesDone, filesTotal, bytesDone, bytesTotal }) => {
      progress.push([filesDone, filesTotal, bytesDone, bytesTotal]);
    },
  });
  t.match(files, { repo, revision: 'main', commit, config: 'default' });
  t.notOk('parquetCommit' in files);
  t.strictSame(files.info, { features: [{ name: 'a', dtype: 'int8' }] });
  t.strictSame([...files.splits.keys()], ['train', 'test']);
  t.strictSame(contentsOf(files), smallContents);
  t.strictSame(progress.at(-1), [2, 2, 73_000, 73_000]);
  t.ok(
    progress.every(
      ([, total, bytes = 0, all = 0]) => total === 2 && all === 73_000 && bytes <= all,
    ),
  );

  const resolve = `/datasets/fx/a/resolve/${commit}`;
  t.strictSame(questions(server.taken('hub')).sort(), [
    `GET /api/datasets/fx/a/revision/main`,
    `GET /api/datasets/fx/a/tree/${commit}`,
    `GET /api/resolve-cache/datasets/fx/a/${commit}/README.md`,
    `GET ${resolve}/README.md`,
    `GET ${resolve}/data/test-00000-of-00001.parquet`,
    `GET ${resolve}/data/train-00000-of-00001.parquet`,
  ]);

  const entries = entriesBelow(caller.folder(repo));
  const blob = (name: string, data: Uint8Array) => `blobs/${etagOf(name, data)}`;
  const card = Buffer.from(readme);
  t.equal(entries['refs/main'], sha256(Buffer.from(commit)), 'the commit and no newline');
  t.strictSame(Object.keys(entries).sort(), [
    ...[blob('README.md', card), blob('x.parquet', train), blob('x.parquet', test)].sort(),
    'refs/main',
    `snapshots/${commit}/README.md`,
    `snapshots/${commit}/data/test-00000-of-00001.parquet`,
    `snapshots/${commit}/data/train-00000-of-00001.parquet`,
    `trees/${commit}.json`,
  ]);
  if (process.platform !== 'win32') {
    t.equal(
      entries[`snapshots/${commit}/data/train-00000-of-00001.parquet`],
      `-> ../../../${blob('x.parquet', train)}`,
    );
  }

  await caller.load(repo);
  t.strictSame(questions(server.taken()), ['GET /api/datasets/fx/a/revision/main'], 'again');
  t.strictSame(contentsOf(await caller.load(repo, { revision: commit })), smallContents);
  t.strictSame(server.taken(), [], 'a commit that is there asks nothing');
});

t.test('only the splits that are asked for are loaded', async (t) => {
  const { server, caller } = await begin(t);
  t.strictSame(contentsOf(await caller.load(repo, { splits: ['test'] })), {
    test: smallContents.test,
  });
  t.strictSame(server.taken('storage').length, 1);
  t.match(await failureOf(caller.load(repo, { splits: ['gone'] })), {
    code: 'INVALID_ARGUMENT',
    field: 'splits',
    message: /it has "train", "test"/,
  });
});

t.test('names are encoded once, and mean themselves (B87)', async (t) => {
  const server = await HubServer.start(t);
  const names = [
    'data/c#/a b%20[1]@x.parquet',
    '?.parquet',
    'data/ü&=+;.parquet',
    "d/'(!)~.parquet",
  ];
  const contents = names.map((_, index) => bytesOf(100 + index, index));
  const decoys = {
    'data/c': bytesOf(9, 90),
    'data/c#/a b%201@x.parquet': bytesOf(9, 91),
    'q.parquet': bytesOf(9, 92),
  };
  const list = names.map((name) => `  - ${JSON.stringify(name)}`).join('\n');
  server.commit(repo, 'main', {
    ...Object.fromEntries(names.map((name, index) => [name, contents[index] ?? ''])),
    ...decoys,
    'README.md': `---\nconfigs:\n- config_name: x\n  data_files:\n${list}\n---\n`,
  });
  const files = await new Caller(scratch, server).load(repo);
  t.strictSame(contentsOf(files), {
    train: Object.fromEntries(names.map((name, index) => [name, sha256(contents[index] ?? train)])),
  });
});

t.test('files whose snapshots are one are read by their content', async (t) => {
  // As on a file system that folds case: the second file's link took the first one's place.
  const { server, commit, caller } = await begin(t);
  await caller.load(repo);
  const file = path.join(
    caller.folder(repo),
    'snapshots',
    commit,
    'data',
    'train-00000-of-00001.parquet',
  );
  unlinkSync(file);
  writeFileSync(file, bytesOf(train.length, 9));
  t.strictSame(contentsOf(await caller.load(repo)), smallContents);
  caller.env.HF_HUB_OFFLINE = '1';
  t.strictSame(contentsOf(await caller.load(repo)), smallContents);
  t.ok(server);
});

t.test('old datasets have a name without an owner; lists come in pages', async (t) => {
  const server = await HubServer.start(t, { pageEntries: 3 });
  const names = Array.from(
    { length: 20 },
    (_, index) => `data/train-000${index + 10}-of-00040.parquet`,
  );
  server.commit(
    'squad',
    'main',
    Object.fromEntries(names.map((name) => [name, bytesOf(10, name.length)])),
  );
  const files = await new Caller(scratch, server).load('squad');
  t.strictSame(
    files.splits.get('train')?.map(({ name }) => name),
    names,
  );
  t.equal(server.taken('hub').filter(({ url }) => url.includes('/tree/')).length, 7);
});

// ---- revisions ----

t.test('branches, tags, commits and references (B91)', async (t) => {
  const { server, caller } = await begin(t);
  const commits = new Map(
    ['v1.0', 'feature/x', 'refs/pr/1', 'refs/convert/parquet'].map((revision, index) => [
      revision,
      server.commit(repo, revision, { 'default/train/0000.parquet': bytesOf(50, index) }),
    ]),
  );
  for (const [revision, commit] of commits) {
    const files = await caller.load(repo, { revision });
    t.match(files, { revision, commit }, revision);
    t.equal(readFileSync(path.join(caller.folder(repo), 'refs', revision), 'utf8'), commit);
    const again = await caller.load(repo, { revision: commit });
    t.strictSame(contentsOf(again), contentsOf(files), `${revision} by its commit`);
  }
  t.match(await failureOf(caller.load(repo, { revision: 'nosuch' })), {
    code: 'NOT_FOUND',
    field: 'revision',
    message: /no branch, tag or commit "nosuch"/,
  });
  t.match(await failureOf(caller.load(repo, { revision: 'f'.repeat(40) })), { code: 'NOT_FOUND' });
});

t.test('main moves while it is read: all is of the first commit (B91)', async (t) => {
  for (const moment of ['tree', 'content']) {
    const { server, commit, caller } = await begin(t);
    const move = (): void => {
      server.commit(repo, 'main', { 'data/train-00000-of-00001.parquet': bytesOf(10, 77) });
    };
    if (moment === 'content') server.onContent = move;
    server.intercept = ({ url }) => {
      if (moment === 'tree' && url.includes('/tree/')) move();
      return undefined;
    };
    const files = await caller.load(repo);
    t.equal(files.commit, commit, moment);
    t.strictSame(contentsOf(files), smallContents);
  }
});

t.test('a tag is deleted while it is read, and then gone (B91)', async (t) => {
  const { server, caller } = await begin(t);
  const commit = server.commit(repo, 'v1', small);
  server.intercept = ({ url }) => {
    if (url.includes('/tree/')) server.deleteRef(repo, 'v1');
    return undefined;
  };
  const files = await caller.load(repo, { revision: 'v1' });
  t.equal(files.commit, commit);
  t.match(await failureOf(caller.load(repo, { revision: 'v1' })), {
    code: 'NOT_FOUND',
    field: 'revision',
  });
});

t.test('what is no commit is not taken for one', async (t) => {
  for (const sha of ['../../x', '', 'abc', 'F'.repeat(40), 7, null, undefined]) {
    const { server, caller } = await begin(t);
    server.intercept = ({ url }) =>
      url.includes('/revision/')
        ? {
            status: 200,
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ _id: '1', id: repo, sha }),
          }
        : undefined;
    t.match(
      await failureOf(caller.load(repo)),
      { code: 'NETWORK', message: /not a commit/ },
      String(sha),
    );
    t.strictSame(entriesBelow(caller.homeFolder), {});
  }
});

// ---- the hub's own copy ----

t.test('without Parquet files main stands for the copy that the hub made', async (t) => {
  const server = await HubServer.start(t);
  const caller = new Caller(scratch, server);
  const main = server.commit(repo, 'main', { 'train.csv': 'a\n1\n', 'README.md': readme });
  server.commit(repo, 'other', { 'train.csv': 'a\n1\n' });
  t.match(await failureOf(caller.load(repo)), { code: 'NOT_FOUND', message: /no Parquet copy/ });

  const data = bytesOf(500, 5);
  const copy = server.commit(repo, 'refs/convert/parquet', {
    'default/train/0000.parquet': data,
    '.gitattributes.txt': '',
  });
  for (const options of [{}, { revision: 'main' }, { config: 'default' }]) {
    const files = await caller.load(repo, options);
    t.match(files, { revision: 'main', commit: main, parquetCommit: copy, config: 'default' });
    t.strictSame(contentsOf(files), { train: { 'default/train/0000.parquet': sha256(data) } });
    t.ok(files.info, "the repository's own card counts");
  }
  for (const revision of ['other', main]) {
    server.taken();
    t.match(await failureOf(caller.load(repo, { revision })), { code: 'UNSUPPORTED' });
    t.notMatch(questions(server.taken()).join(), /convert/, 'any other revision is only itself');
  }
  t.match(await caller.load(repo, { revision: 'refs/convert/parquet' }), { commit: copy });
  t.match(await failureOf(caller.load(repo, { config: 'nosuch' })), { field: 'config' });

  // The copy is looked up once: it moves, and files still come from the first.
  const moving = new Caller(scratch, server);
  server.onContent = (name) => {
    if (!name.endsWith('.parquet')) return;
    server.commit(repo, 'refs/convert/parquet', { 'default/train/0000.parquet': bytesOf(9, 9) });
  };
  t.match(await moving.load(repo), { parquetCommit: copy });

  server.onContent = undefined;
  server.commit(repo, 'refs/convert/parquet', { 'default/partial-train/0000.parquet': data });
  t.match(await failureOf(caller.load(repo)), {
    code: 'UNSUPPORTED',
    message: /only a part of split "train"/,
  });
});

t.test('where main has a Parquet file the copy is not asked for', async (t) => {
  const { server, caller } = await begin(t);
  server.commit(repo, 'refs/convert/parquet', { 'default/train/0000.parquet': bytesOf(9, 9) });
  server.commit(repo, 'main', { 'a.csv': '', 'b.csv': '', 'x/c.parquet': bytesOf(9, 1) });
  t.match(await failureOf(caller.load(repo)), {
    code: 'UNSUPPORTED',
    message: /refs\/convert\/parquet/,
  });
  t.notMatch(questions(server.taken()).join(), /convert/);
});

// ---- who may read ----

const problem = (
  status: number,
  code?: string,
  text = 'no',
  more: Answer['headers'] = {},
): Answer => ({
  status,
  headers: {
    'content-type': 'application/json',
    ...(code === undefined ? {} : { 'x-error-code': code }),
    ...more,
  },
  body: JSON.stringify({ error: text }),
});

t.test('each refusal has a code and a message of its own', async (t) => {
  const gated = problem(403, 'GatedRepo', 'Access is restricted');
  const rows: readonly (readonly [string, Answer, string | undefined, string, RegExp])[] = [
    [
      'gated, nobody',
      problem(401, 'GatedRepo'),
      undefined,
      'GATED',
      /agree on http:.*\/datasets\/fx\/a, and give/,
    ],
    [
      'gated, not let in',
      gated,
      token,
      'GATED',
      /token from HF_TOKEN may not read it: agree .*let you in/,
    ],
    [
      'private or missing, nobody',
      problem(401, 'RepoNotFound'),
      undefined,
      'UNAUTHORIZED',
      /no such dataset, or it is private; without a token/,
    ],
    [
      'missing, no code',
      problem(401),
      undefined,
      'UNAUTHORIZED',
      /no such dataset, or it is private/,
    ],
    [
      'wrong token',
      problem(401, undefined, 'Invalid credentials in Authorization header'),
      token,
      'UNAUTHORIZED',
      /does not take the token from HF_TOKEN; .*Invalid credentials/,
    ],
    [
      'missing, with a token',
      problem(404, 'RepoNotFound'),
      token,
      'NOT_FOUND',
      /no such dataset on http.*, or it is private/,
    ],
    [
      'missing',
      problem(404, 'RepoNotFound'),
      undefined,
      'NOT_FOUND',
      /no such dataset on http:\S+$/,
    ],
    [
      'no right',
      problem(403, undefined, 'Access to this resource is disabled.'),
      undefined,
      'UNAUTHORIZED',
      /not allow it without a token .*is disabled/,
    ],
    [
      'no right, with a token',
      problem(403),
      token,
      'UNAUTHORIZED',
      /token from HF_TOKEN does not allow it/,
    ],
    [
      'no revision',
      problem(404, 'RevisionNotFound', 'Invalid rev id: main'),
      undefined,
      'NOT_FOUND',
      /no branch, tag or commit "main"/,
    ],
    ['teapot', problem(418), undefined, 'NETWORK', /status 418/],
    [
      'too many requests',
      problem(429, undefined, 'no', { 'retry-after': '3600' }),
      undefined,
      'RATE_LIMITED',
      /in 3600 seconds, .* A token raises the limit/,
    ],
    [
      'too many requests, with a token',
      problem(429, undefined, 'no', { ratelimit: '"api";r=0;t=290' }),
      token,
      'RATE_LIMITED',
      /in 290 seconds, what was loaded is kept\.$/,
    ],
  ];
  const messages = new Set<string>();
  for (const [what, answer, given, code, message] of rows) {
    const { server, caller } = await begin(t);
    if (given !== undefined) caller.env.HF_TOKEN = given;
    server.intercept = () => answer;
    const error = await failureOf(caller.load(repo));
    t.match(error, { name: 'LoaderxError', code, message, path: repo }, what);
    t.strictSame(caller.waits, [], `${what} is not tried again`);
    messages.add(error.message.replaceAll(server.endpoint, ''));
  }
  t.equal(
    messages.size,
    rows.length - 1,
    'all differ but the two that the hub does not tell apart',
  );

  const { caller } = await begin(t);
  caller.env.HF_HUB_OFFLINE = '1';
  t.match(await failureOf(caller.load(repo)), {
    code: 'OFFLINE',
    message: /"main" is not in the cache/,
  });
});

t.test('a dataset that only its owner may read', async (t) => {
  const { server, caller } = await begin(t, { token });
  t.match(await failureOf(caller.load(repo)), { code: 'UNAUTHORIZED' });
  t.strictSame(contentsOf(await caller.load(repo, { token })), smallContents);
  t.ok(server.taken('storage').every(({ headers }) => headers.authorization === undefined));
});

t.test('the token goes to the hub and nowhere else, and is never shown', async (t) => {
  const { server, caller } = await begin(t);
  caller.env.HF_TOKEN = token;
  await caller.load(repo);
  const requests = server.taken();
  t.ok(requests.some(({ host }) => host === 'storage'));
  for (const { host, headers, url } of requests) {
    t.equal(
      headers.authorization,
      host === 'hub' ? `Bearer ${token}` : undefined,
      `${host} ${url}`,
    );
  }

  const other = await HubServer.start(t);
  const away = (location: string): Answer => ({ status: 302, headers: { location } });
  const hostile: readonly (readonly [string, (request: Request) => Answer | undefined])[] = [
    [
      'a list goes on elsewhere',
      ({ url }) =>
        url.includes('/tree/')
          ? {
              status: 200,
              headers: {
                'content-type': 'application/json',
                link: `<${other.endpoint}/next>; rel="next"`,
              },
              body: '[]',
            }
          : undefined,
    ],
    ['a question is sent elsewhere', () => away(`${other.endpoint}/x?q=${token}&signature=secret`)],
    [
      'content is sent elsewhere',
      ({ url }) =>
        url.includes('/resolve/') ? away(`${other.storageOrigin}/x?signature=secret`) : undefined,
    ],
    [
      'the token is in the address',
      ({ url }) => (url.includes('/resolve/') ? away(`http://${token}@127.0.0.1/`) : undefined),
    ],
    ['no web', ({ url }) => (url.includes('/resolve/') ? away('file:///etc/passwd') : undefined)],
    [
      'no address',
      ({ url }) => (url.includes('/resolve/') ? away('http://[/?signature=secret') : undefined),
    ],
    ['round and round', ({ url }) => away(url)],
    [
      'it is repeated',
      () => problem(403, undefined, `Bearer ${token} may not, https://h.test/x?signature=secret`),
    ],
    [
      'it is repeated in a header',
      () => problem(403, undefined, 'no', { 'x-error-message': `hf_other and ${token}` }),
    ],
    [
      'it is repeated as a commit',
      () => ({
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ sha: token }),
      }),
    ],
  ];
  for (const [what, intercept] of hostile) {
    const fresh = new Caller(scratch, server);
    fresh.env.HF_TOKEN = token;
    other.taken();
    server.intercept = intercept;
    const error = await failureOf(fresh.load(repo));
    const shown = [
      inspect(error, { depth: 9, showHidden: true }),
      JSON.stringify(error),
      error.stack,
      String(error.cause),
    ].join('\n');
    t.notMatch(
      shown,
      what === 'it is repeated as a commit'
        ? /signature=secret/
        : /WouldBeAToken|signature=secret|hf_other/,
      `${what}: ${error.message}`,
    );
    t.ok(
      other.taken().every(({ headers }) => headers.authorization === undefined),
      what,
    );
  }
});

t.test('tokens that no header can carry are refused without being shown', async (t) => {
  const { caller } = await begin(t);
  for (const bad of ['', ' ', 'hf_secret x', 'hf_secret\r\nX: y', 'hf_secretä']) {
    const error = await failureOf(caller.load(repo, { token: bad }));
    t.match(error, { code: 'INVALID_ARGUMENT', field: 'token' });
    t.notMatch(error.message, /secret/);
  }
});

// ---- the network ----

t.test('what passes is tried again, after a wait', async (t) => {
  for (const status of [408, 429, 500, 502, 503, 504]) {
    const { server, caller } = await begin(t);
    let left = 3;
    server.intercept = () => {
      left -= 1;
      return left >= 0 ? { status, body: '<html>' } : undefined;
    };
    t.strictSame(contentsOf(await caller.load(repo)), smallContents, String(status));
    t.strictSame(caller.waits, [1000, 2000, 4000]);
  }
  const { server, caller } = await begin(t);
  let first = true;
  server.intercept = ({ host }) => {
    if (host !== 'storage' || !first) return undefined;
    first = false;
    return problem(429, undefined, 'no', { 'retry-after': '7' });
  };
  t.strictSame(contentsOf(await caller.load(repo)), smallContents);
  t.strictSame(caller.waits, [8000], 'as long as the hub says, and a second');

  const never = await begin(t);
  never.server.intercept = () => ({ status: 503 });
  t.match(await failureOf(never.caller.load(repo)), { code: 'NETWORK', message: /status 503/ });
  t.strictSame(never.caller.waits, [1000, 2000, 4000, 8000]);
});

t.test('no hub, and a hub that goes away', async (t) => {
  const { server, caller } = await begin(t);
  const { endpoint } = server;
  server.intercept = ({ host }) => (host === 'storage' ? 'cut' : undefined);
  t.match(await failureOf(caller.load(repo)), { code: 'NETWORK', message: /broke off/ });
  t.equal(caller.waits.length >= 4, true);
  await server.stop();
  t.match(await failureOf(new Caller(scratch).load(repo, { endpoint })), {
    code: 'NETWORK',
    osCode: 'ECONNREFUSED',
    message: /cannot be reached; HF_HUB_OFFLINE=1/,
  });
});

t.test('a hub that says nothing is not waited for', async (t) => {
  const { server, caller } = await begin(t);
  caller.env.HF_HUB_ETAG_TIMEOUT = '1';
  caller.env.HF_HUB_DOWNLOAD_TIMEOUT = '1';
  let silent = true;
  server.onContent = async (name) => {
    if (!silent || !name.startsWith('data/train')) return;
    silent = false;
    await new Promise((resolve) => setTimeout(resolve, 1500));
  };
  t.strictSame(contentsOf(await caller.load(repo)), smallContents);
  t.strictSame(caller.waits, [1000]);
});

t.test('answers that cannot be read', async (t) => {
  const texts = ['', '<html>', '7', 'null', '{}', '[1]', '[{"type":"file"}]'];
  const entry = { type: 'file', path: 'a.parquet', size: 1, oid: '0'.repeat(40) };
  const entries = [
    { ...entry, size: -1 },
    { ...entry, size: 1.5 },
    { ...entry, oid: '../../x' },
    { ...entry, path: 7 },
    { ...entry, lfs: { oid: '../x', size: 1 } },
    { ...entry, lfs: { oid: '0'.repeat(40), size: 1 } },
  ];
  for (const body of [...texts, ...entries.map((one) => JSON.stringify([one]))]) {
    const { server, caller } = await begin(t);
    server.intercept = ({ url }) =>
      url.includes('/tree/')
        ? { status: 200, headers: { 'content-type': 'application/json' }, body }
        : undefined;
    t.match(await failureOf(caller.load(repo)), { code: 'NETWORK' }, body);
  }
});

t.test('giving up', async (t) => {
  const { server, caller } = await begin(t);
  const given = new AbortController();
  const reason = new Error('enough');
  server.onContent = (name) => {
    if (name.startsWith('data/')) given.abort(reason);
  };
  const error = await failureOf(caller.load(repo, { signal: given.signal }));
  t.match(error, { code: 'ABORTED' });
  t.equal(error.cause, reason);
  t.match(
    await failureOf(caller.load(repo, { signal: given.signal })),
    { code: 'ABORTED' },
    'from the start',
  );
  server.onContent = undefined;
  t.strictSame(contentsOf(await caller.load(repo)), smallContents);

  const loud = new Caller(scratch, server);
  const thrown = new Error('mine');
  const ended = await failureOf(
    loud.load(repo, {
      onProgress: () => {
        throw thrown;
      },
    }),
  );
  t.equal(ended, thrown as unknown, 'what onProgress throws ends the work');
});

// ---- variables ----

t.test('variables say where, who and whether (HF_*)', async (t) => {
  const { server } = await begin(t, { token });
  const rows: readonly (readonly [string, (caller: Caller) => void, string | undefined])[] = [
    [
      'HF_TOKEN',
      ({ env }) => {
        env.HF_TOKEN = `${token}\n`;
      },
      '.cache/huggingface/hub',
    ],
    [
      'HUGGING_FACE_HUB_TOKEN',
      ({ env }) => {
        env.HUGGING_FACE_HUB_TOKEN = token;
      },
      '.cache/huggingface/hub',
    ],
    [
      'HF_TOKEN first',
      ({ env }) => {
        env.HF_TOKEN = token;
        env.HUGGING_FACE_HUB_TOKEN = 'hf_no';
      },
      '.cache/huggingface/hub',
    ],
    [
      'an empty variable is none',
      ({ env }) => {
        env.HF_TOKEN = '';
        env.HUGGING_FACE_HUB_TOKEN = token;
      },
      '.cache/huggingface/hub',
    ],
    [
      'the login',
      ({ homeFolder }) => {
        put(homeFolder, '.cache/huggingface/token');
      },
      '.cache/huggingface/hub',
    ],
    [
      'HF_HOME',
      ({ env, homeFolder }) => {
        env.HF_HOME = path.join(homeFolder, 'h');
        put(homeFolder, 'h/token');
      },
      'h/hub',
    ],
    [
      '~',
      ({ env, homeFolder }) => {
        env.HF_HOME = '~/h';
        put(homeFolder, 'h/token');
      },
      'h/hub',
    ],
    [
      'XDG_CACHE_HOME',
      ({ env, homeFolder }) => {
        env.XDG_CACHE_HOME = path.join(homeFolder, 'x');
        put(homeFolder, 'x/huggingface/token');
      },
      'x/huggingface/hub',
    ],
    [
      'HF_TOKEN_PATH',
      ({ env, homeFolder }) => {
        env.HF_TOKEN_PATH = path.join(homeFolder, 't');
        put(homeFolder, 't');
      },
      '.cache/huggingface/hub',
    ],
    [
      'HF_HUB_CACHE',
      ({ env, homeFolder }) => {
        env.HF_TOKEN = token;
        env.HF_HUB_CACHE = path.join(homeFolder, 'c');
        env.HUGGINGFACE_HUB_CACHE = '/no';
      },
      'c',
    ],
    [
      'HUGGINGFACE_HUB_CACHE',
      ({ env, homeFolder }) => {
        env.HF_TOKEN = token;
        env.HUGGINGFACE_HUB_CACHE = path.join(homeFolder, 'c');
      },
      'c',
    ],
    [
      'a slash behind the endpoint',
      ({ env }) => {
        env.HF_TOKEN = token;
        env.HF_ENDPOINT = `${server.endpoint}/`;
      },
      '.cache/huggingface/hub',
    ],
    ['no token', () => {}, undefined],
    [
      'HF_HUB_DISABLE_IMPLICIT_TOKEN',
      ({ env }) => {
        env.HF_TOKEN = token;
        env.HF_HUB_DISABLE_IMPLICIT_TOKEN = 'yes';
      },
      undefined,
    ],
  ];
  function put(homeFolder: string, name: string): void {
    const file = path.join(homeFolder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, ` ${token}\n`);
  }
  for (const [what, prepare, cache] of rows) {
    const caller = new Caller(scratch, server);
    prepare(caller);
    if (cache === undefined) {
      t.match(await failureOf(caller.load(repo)), { code: 'UNAUTHORIZED' }, what);
      continue;
    }
    t.strictSame(contentsOf(await caller.load(repo)), smallContents, what);
    t.ok(existsSync(path.join(caller.homeFolder, cache, 'datasets--fx--a')), `${what}: ${cache}`);
  }

  const caller = new Caller(scratch, server);
  caller.env.HF_TOKEN = token;
  caller.env.HF_HUB_CACHE = '/no';
  t.match(
    await failureOf(caller.load(repo, { token: null })),
    { code: 'UNAUTHORIZED' },
    'token: null',
  );
  const cacheDir = scratch.folder();
  caller.env.HF_TOKEN = 'hf_wrong';
  caller.env.HF_ENDPOINT = 'http://127.0.0.1:1';
  await caller.load(repo, { cacheDir, token, endpoint: server.endpoint });
  t.ok(existsSync(path.join(cacheDir, 'datasets--fx--a')), 'options come before variables');
  for (const endpoint of [
    '',
    'x',
    'ftp://h',
    'https://u:p@h',
    'https://h?x=1',
    'https://h#x',
    7 as never,
  ]) {
    const error = await failureOf(caller.load(repo, { endpoint }));
    t.match(error, { code: 'INVALID_ARGUMENT', field: 'endpoint' }, String(endpoint));
    t.notMatch(error.message, /u:p/);
  }
  const wrong = {
    revision: 7,
    config: 7,
    splits: [],
    cacheDir: '',
    signal: {},
    onProgress: 1,
    other: 1,
  };
  for (const [field, value] of Object.entries(wrong)) {
    t.match(
      await failureOf(caller.load(repo, { [field]: value })),
      { code: 'INVALID_ARGUMENT', field },
      field,
    );
  }
});

// ---- offline ----

t.test('offline, from what is in the cache', async (t) => {
  for (const name of ['HF_HUB_OFFLINE', 'TRANSFORMERS_OFFLINE']) {
    const { server, commit, caller } = await begin(t);
    await caller.load(repo);
    server.taken();
    caller.env[name] = 'True';
    for (const revision of ['main', commit]) {
      const files = await caller.load(repo, { revision });
      t.strictSame(contentsOf(files), smallContents);
      t.equal(files.commit, commit);
      t.ok(files.info);
    }
    t.match(await failureOf(caller.load(repo, { revision: 'v2' })), {
      code: 'OFFLINE',
      message: /revision "v2"/,
    });
    t.match(await failureOf(caller.load('fx/b')), { code: 'OFFLINE' });

    unlinkSync(path.join(caller.folder(repo), 'blobs', sha256(test)));
    unlinkSync(
      path.join(caller.folder(repo), 'snapshots', commit, 'data', 'test-00000-of-00001.parquet'),
    );
    t.match(await failureOf(caller.load(repo)), {
      code: 'OFFLINE',
      message: /"data\/test-00000-of-00001.parquet" is not in the cache/,
    });
    t.strictSame(contentsOf(await caller.load(repo, { splits: ['train'] })), {
      train: smallContents.train,
    });
    t.strictSame(server.taken(), [], 'nothing was asked');
  }
});

t.test('offline, from a cache without a list of the commit', async (t) => {
  const { server, commit, caller } = await begin(t);
  await caller.load(repo);
  rmSync(path.join(caller.folder(repo), 'trees'), { recursive: true });
  caller.env.HF_HUB_OFFLINE = '1';
  t.strictSame(contentsOf(await caller.load(repo)), smallContents);

  // A part of numbered files is not taken for all of them.
  const data = path.join(caller.folder(repo), 'snapshots', commit, 'data');
  writeFileSync(path.join(data, 'more-00000-of-00002.parquet'), 'x');
  t.match(await failureOf(caller.load(repo)), { code: 'OFFLINE', message: /more-00001-of-00002/ });
  t.strictSame(server.taken('storage').length, 2);
});

t.test("offline, from the hub's copy", async (t) => {
  const server = await HubServer.start(t);
  const caller = new Caller(scratch, server);
  server.commit(repo, 'main', { 'train.csv': 'a\n1\n' });
  const copy = server.commit(repo, 'refs/convert/parquet', { 'default/train/0000.parquet': train });
  await caller.load(repo);
  caller.env.HF_HUB_OFFLINE = '1';
  t.match(await caller.load(repo), { parquetCommit: copy });
});

// ---- hostile ----

t.test(
  'paths that lead out of the cache are refused before anything is written (B88)',
  async (t) => {
    const names = [
      '../../x.parquet',
      'a/../../x.parquet',
      '/abs.parquet',
      'C:\\x.parquet',
      'D:x.parquet',
      '\\\\h\\s.parquet',
      'a/./x.parquet',
      'a//x.parquet',
    ];
    for (const name of names) {
      for (const platform of ['linux', 'win32'] as const) {
        const { server, caller } = await begin(t);
        server.intercept = ({ url }) =>
          url.includes('/tree/')
            ? {
                status: 200,
                headers: { 'content-type': 'application/json' },
                body: JSON.stringify([
                  {
                    type: 'file',
                    path: name,
                    size: 3000,
                    oid: '0'.repeat(40),
                    lfs: { oid: sha256(test), size: 3000, pointerSize: 1 },
                  },
                ]),
              }
            : undefined;
        t.match(
          await failureOf(caller.load(repo, {}, platform)),
          { code: 'UNSUPPORTED', file: name },
          `${name} on ${platform}`,
        );
        const left = Object.keys(entriesBelow(caller.homeFolder)).filter(
          (one) => !/\/(refs|trees)\//.test(one),
        );
        t.strictSame(left, []);
      }
    }
  },
);

t.test('a symbolic link in the cache is not written through (B88)', async (t) => {
  if (process.platform === 'win32') {
    t.pass('links', { skip: 'making them takes rights' });
    return;
  }
  const { server, commit } = await begin(t);
  const levels = [
    '.',
    'blobs',
    'refs',
    'trees',
    'snapshots',
    `snapshots/${commit}`,
    `snapshots/${commit}/data`,
  ];
  for (const level of levels) {
    const caller = new Caller(scratch, server);
    const outside = scratch.folder();
    const at = path.join(caller.folder(repo), level);
    mkdirSync(path.dirname(at), { recursive: true });
    symlinkSync(outside, at);
    t.match(
      await failureOf(caller.load(repo)),
      { code: 'UNSUPPORTED', message: /is a link/ },
      level,
    );
    t.strictSame(entriesBelow(outside), {}, level);
  }

  // Where a file should be: the link is replaced, what it leads to stays.
  const victim = scratch.fresh('victim');
  writeFileSync(victim, 'mine');
  const places = [
    `blobs/${sha256(train)}`,
    'refs/main',
    `trees/${commit}.json`,
    `snapshots/${commit}/data/train-00000-of-00001.parquet`,
  ];
  for (const place of places) {
    const caller = new Caller(scratch, server);
    const at = path.join(caller.folder(repo), place);
    mkdirSync(path.dirname(at), { recursive: true });
    symlinkSync(victim, at);
    t.strictSame(contentsOf(await caller.load(repo)), smallContents, place);
    t.equal(readFileSync(victim, 'utf8'), 'mine', place);
  }

  // Content that Python shares between repositories is read through its link.
  const caller = new Caller(scratch, server);
  const shared = path.join(caller.cacheDir, 'blobs', 'ab', 'cd');
  mkdirSync(path.dirname(shared), { recursive: true });
  writeFileSync(shared, train);
  const blob = path.join(caller.folder(repo), 'blobs', sha256(train));
  mkdirSync(path.dirname(blob), { recursive: true });
  symlinkSync(path.relative(path.dirname(blob), shared), blob);
  server.taken();
  t.strictSame(contentsOf(await caller.load(repo)), smallContents);
  t.equal(server.taken('storage').length, 1, 'only the other file was loaded');
});

t.test('what is in the cache and not what the list has is loaded again', async (t) => {
  const { server, commit, caller } = await begin(t);
  await caller.load(repo);
  const blob = path.join(caller.folder(repo), 'blobs', sha256(train));
  const file = path.join(
    caller.folder(repo),
    'snapshots',
    commit,
    'data',
    'train-00000-of-00001.parquet',
  );
  const spoils: readonly (readonly [string, () => void])[] = [
    ['a short blob', () => writeFileSync(blob, 'x')],
    ['no blob', () => unlinkSync(blob)],
    [
      'another link',
      () => {
        unlinkSync(file);
        symlinkSync('../../../blobs/x', file);
      },
    ],
    [
      'a short file',
      () => {
        unlinkSync(file);
        writeFileSync(file, 'x');
      },
    ],
    [
      'a damaged list',
      () =>
        writeFileSync(
          path.join(caller.folder(repo), 'trees', `${commit}.json`),
          '{"format_version": 1',
        ),
    ],
    [
      'a list of a later version',
      () =>
        writeFileSync(
          path.join(caller.folder(repo), 'trees', `${commit}.json`),
          '{"format_version": 2, "files": {}}',
        ),
    ],
  ];
  for (const [what, spoil] of spoils) {
    spoil();
    t.strictSame(contentsOf(await caller.load(repo)), smallContents, what);
  }
  const left = Object.keys(entriesBelow(caller.folder(repo))).filter((name) =>
    name.includes('incomplete'),
  );
  t.strictSame(left, []);
  t.ok(server);
});
