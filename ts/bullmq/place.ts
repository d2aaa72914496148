/** Where a queue is, and what both of its sides check alike. */
import { ArgumentRangeError, ArgumentTypeError, LoaderxError, show } from '../errors.js';
import type { Fields } from '../store/fields.js';

/** Where Redis is. */
export interface RedisAddress {
  /** `127.0.0.1` unless given. */
  readonly host?: string | undefined;
  /** 6379 unless given. */
  readonly port?: number | undefined;
  /** Whom to log in as, where Redis wants more than a password. */
  readonly username?: string | undefined;
  /** Messages never have it. */
  readonly password?: string | undefined;
  /** The number of the database; 0 unless given. */
  readonly db?: number | undefined;
  /** Whether to speak TLS, and with which options of `node:tls`. */
  readonly tls?: Readonly<Record<string, unknown>> | undefined;
}

/** Where a queue is: those who enqueue, work and look name the same one. */
export interface QueuePlace {
  /** The Redis server that holds it; `{}` is one on this machine. */
  readonly connection: RedisAddress;
  /** The queue's name; `loaderx` unless given. Its sets are made by a second queue, `NAME-sets`. */
  readonly queue?: string | undefined;
  /** What all keys begin with; `bull` unless given. */
  readonly prefix?: string | undefined;
}

/** The fields of a {@link QueuePlace}. */
export const placeFields = ['connection', 'queue', 'prefix'] as const;

/** A place, checked. */
export interface Place {
  readonly connection: RedisAddress;
  /** As messages call it. */
  readonly shown: string;
  readonly parts: string;
  readonly sets: string;
  readonly prefix: string;
}

export function placeOf(fields: Fields): Place {
  const { queue = 'loaderx', prefix = 'bull', connection } = fields;
  if (typeof connection !== 'object' || connection === null || Array.isArray(connection)) {
    throw new ArgumentTypeError(
      'connection',
      `connection must be { host, port }, got ${show(connection)}`,
    );
  }
  const known = ['host', 'port', 'username', 'password', 'db', 'tls'];
  const unknown = Object.keys(connection).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw new ArgumentTypeError(
      'connection',
      `there is no connection.${unknown}; known are ${known.join(', ')}`,
    );
  }
  const address = connection as RedisAddress;
  const { host = '127.0.0.1', port = 6379 } = address;
  if (typeof host !== 'string' || host === '') {
    throw new ArgumentTypeError('connection', `connection.host must be a text, got ${show(host)}`);
  }
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new ArgumentTypeError(
      'connection',
      `connection.port must be 1 to 65535, got ${show(port)}`,
    );
  }
  for (const [name, text] of Object.entries({ queue, prefix })) {
    if (typeof text === 'string' && /^[\w{}.-]{1,100}$/.test(text)) continue;
    throw new ArgumentTypeError(
      name,
      `${name} must be letters, digits, _, -, . or braces, got ${show(text)}`,
    );
  }
  return {
    connection: { ...address, host, port },
    shown: `${host}:${port}`,
    parts: String(queue),
    sets: `${queue}-sets`,
    prefix: String(prefix),
  };
}

/**
 * What clients of Redis are made with: they look for it again and again, until it is over.
 *
 * @param isOver asked before each try: a client that is closed while Redis is away would try for ever
 */
export function clientOptions(place: Place, isOver: () => boolean) {
  return {
    ...place.connection,
    retryStrategy: (times: number): number | null =>
      isOver() ? null : Math.min(100 * times, 2000),
  };
}

/** A whole number among options. */
export function wholeOf(fields: Fields, name: string, otherwise: number, least: number): number {
  const { [name]: value = otherwise } = fields;
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw new ArgumentTypeError(name, `${name} must be an integer, got ${show(value)}`);
  }
  if (value < least) {
    throw new ArgumentRangeError(name, `${name} must be ${least} or more, got ${value}`);
  }
  return value;
}

/** What the client of Redis said, without what may be secret. */
export function unreachable(place: Place, cause: unknown): LoaderxError {
  const { code, message } = (cause ?? {}) as {
    readonly code?: unknown;
    readonly message?: unknown;
  };
  const said =
    typeof code === 'string' ? code : typeof message === 'string' ? message : 'no answer';
  return new LoaderxError(
    'NETWORK',
    `Redis at ${place.shown} cannot be reached (${said || 'no answer'})`,
    typeof code === 'string' ? { osCode: code } : {},
    { cause },
  );
}
