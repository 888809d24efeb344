// kafkajs: the client of Node, with a protocol implementation of its own.
// Its legacy partitioner warning and logs are off: a case says ok or FAIL, nothing else.
process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1'
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')
const { randomUUID } = require('crypto')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = new (require('kafkajs-lz4'))().codec

const kafka = new Kafka({ brokers: [process.argv[2]], clientId: 'kafkajs-test', logLevel: logLevel.NOTHING })
const admin = kafka.admin()
const cases = []
const test = (name, run) => cases.push({ name: name.replaceAll(' ', '_'), run })
const unique = name => `kafkajs-${name}-${randomUUID().slice(0, 8)}`
const text = value => JSON.stringify(value)

function equal(got, wanted) {
  if (text(got) !== text(wanted)) throw new Error(`got ${text(got).slice(0, 200)}, wanted ${text(wanted).slice(0, 200)}`)
}

async function refused(promise, type) {
  const error = await promise.then(() => new Error('was accepted'), error => error)
  if (!text(error).includes(type) && error.type !== type) throw error
}

async function eventually(probe, what) {
  for (let tries = 0; tries < 400; tries++) {
    if (await probe()) return
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error(`no ${what} within 20 s`)
}

async function newTopic(name, numPartitions = 1) {
  const topic = unique(name)
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions }] })
  return topic
}

async function produce(topic, messages, options = {}) {
  const { compression, ...config } = options
  const producer = kafka.producer(config)
  await producer.connect()
  const answer = await producer.send({ topic, messages, compression, acks: options.idempotent ? -1 : options.acks })
  await producer.disconnect()
  return answer
}

// A member of a group that collects what it is given.
async function member(groupId, topic, { rebalanced = () => {}, ...options } = {}) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500, ...options })
  const messages = []
  consumer.on(consumer.events.GROUP_JOIN, event => rebalanced(event.payload.memberAssignment[topic] ?? []))
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({ autoCommit: false, eachMessage: async ({ message }) => void messages.push(message) })
  return { consumer, messages, leave: () => consumer.disconnect() }
}

async function readAll(topic, count) {
  const reader = await member(unique('group'), topic)
  await eventually(() => reader.messages.length >= count, `${count} messages`)
  await reader.leave()
  return reader.messages
}

test('every codec comes back as it was', async () => {
  const topic = await newTopic('codecs')
  const values = Array.from({ length: 100 }, (_, n) => `value ${n} `.repeat(50))
  const codecs = [CompressionTypes.None, CompressionTypes.GZIP, CompressionTypes.Snappy, CompressionTypes.LZ4]
  for (const compression of codecs) await produce(topic, values.map(value => ({ value })), { compression })
  const got = await readAll(topic, 400)
  equal(got.map(message => message.value.toString()), codecs.flatMap(() => values))
})

test('keys headers and nulls come back as they were', async () => {
  const topic = await newTopic('shapes')
  const headers = { a: ['1', '2'], empty: '' }
  await produce(topic, [{ key: 'k', value: 'v', headers }, { key: 'tombstone', value: null }, { value: 'no key' }])
  const [first, second, third] = await readAll(topic, 3)
  equal([first.headers.a.map(String), first.headers.empty.toString()], [['1', '2'], ''])
  equal([second.key.toString(), second.value, third.key], ['tombstone', null, null])
})

test('offsets count up and are told', async () => {
  const topic = await newTopic('offsets')
  equal((await produce(topic, [{ value: 'a' }, { value: 'b' }]))[0].baseOffset, '0')
  equal((await produce(topic, [{ value: 'c' }]))[0].baseOffset, '2')
  const [{ low, high }] = await admin.fetchTopicOffsets(topic)
  equal([low, high], ['0', '3'])
})

test('offsets are found by time', async () => {
  const topic = await newTopic('time')
  const now = Date.now()
  for (let n = 0; n < 5; n++) await produce(topic, [{ value: 'x', timestamp: String(now - 10000 + n * 1000) }])
  equal((await admin.fetchTopicOffsetsByTimestamp(topic, now - 7500))[0].offset, '3')
})

test('an idempotent producer writes each record once', async () => {
  const topic = await newTopic('idempotent')
  const values = Array.from({ length: 500 }, (_, n) => `${n}`)
  await produce(topic, values.map(value => ({ value })), { idempotent: true, maxInFlightRequests: 1 })
  equal((await readAll(topic, 500)).map(message => message.value.toString()), values)
})

test('a too large record is refused', async () => {
  const topic = await newTopic('large')
  await refused(produce(topic, [{ value: Buffer.alloc(2000000) }], { retry: { retries: 0 } }), 'MESSAGE_TOO_LARGE')
})

test('a committed offset is where the group goes on', async () => {
  const topic = await newTopic('commit')
  const group = unique('group')
  await produce(topic, Array.from({ length: 10 }, (_, n) => ({ value: `${n}` })))
  const first = await member(group, topic)
  await eventually(() => first.messages.length === 10, 'ten messages')
  await first.consumer.commitOffsets([{ topic, partition: 0, offset: '4' }])
  await first.leave()
  const second = await member(group, topic)
  await eventually(() => second.messages.length === 6, 'six messages')
  equal(second.messages[0].value.toString(), '4')
  await second.leave()
})

test('a group rebalances', async () => {
  const topic = await newTopic('rebalance', 4)
  const group = unique('group')
  const has = {}
  const first = await member(group, topic, { rebalanced: parts => (has.first = parts.length) })
  await eventually(() => has.first === 4, 'assignment to one member')
  const second = await member(group, topic, { rebalanced: parts => (has.second = parts.length) })
  await eventually(() => has.first === 2 && has.second === 2, 'assignment to two members')
  await first.leave()
  await eventually(() => has.second === 4, 'assignment after a member left')
  await second.leave()
})

test('topics are created grown and deleted', async () => {
  const topic = await newTopic('admin', 2)
  equal(await admin.createTopics({ topics: [{ topic }] }), false)
  await admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] })
  const partitions = async () => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length
  await eventually(async () => (await partitions()) === 5, 'five partitions')
  await admin.deleteTopics({ topics: [topic] })
  await eventually(async () => !(await admin.listTopics()).includes(topic), 'topic list without it')
})

test('configs are described and altered', async () => {
  const topic = await newTopic('configs')
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
  const entries = [{ name: 'retention.ms', value: '1234567' }]
  await admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries: entries }] })
  const described = await admin.describeConfigs({ resources: [{ ...resource, configNames: ['retention.ms'] }] })
  equal(described.resources[0].configEntries[0].configValue, '1234567')
})

test('groups are listed described and deleted', async () => {
  const topic = await newTopic('groups')
  const group = unique('group')
  await produce(topic, [{ value: 'x' }])
  const reader = await member(group, topic)
  await eventually(() => reader.messages.length === 1, 'a message')
  equal((await admin.listGroups()).groups.some(each => each.groupId === group), true)
  equal((await admin.describeGroups([group])).groups[0].state, 'Stable')
  await reader.leave()
  await admin.deleteGroups([group])
  equal((await admin.listGroups()).groups.some(each => each.groupId === group), false)
})

async function main() {
  await admin.connect()
  let failures = 0
  for (const { name, run } of cases) {
    const late = new Promise((_, reject) => setTimeout(() => reject(new Error('not done within 60 s')), 60000).unref())
    await Promise.race([run(), late]).then(
      () => console.log(`ok ${name}`),
      error => { failures++; console.log(`FAIL ${name} ${String(error.stack).replaceAll(/\s+/g, ' ').slice(0, 400)}`) },
    )
  }
  await admin.disconnect()
  process.exit(failures)
}

main()
