-- The wakes that a call publishes: to every replica that listens, which waiters were approved and when, and when there
-- may be room again. By its number a replica notices that it has missed a wake: `state.wake` is the number of the last
-- one.

local digits = require 'lib/digits'
local held = require 'limits/held'
local kinds = require 'limits/kinds'
local limits_text = require 'lib/limits-text'
local queue = require 'queue/queue'
local room = require 'lib/room'
local wake = require 'lib/wake'

local news = {}

-- Whether replicas have to learn of this call: waiters were approved, or there may be room sooner than they know.
function news.are_due(keys, state, call)
  if state.has_news or state.serves_more or state.ended or (state.granted and #state.granted > 0) then
    return true
  end
  -- Replicas may know a later time, at which several hits fit that the head needs.
  local depends_on_hits = #state.limits > 1 or not kinds.has_boundary(state.own)
  local has_earlier = state.known_room_at and (
    room.at(state, call) < state.known_room_at or held.first_lapse(state) < state.known_lapse
    or (depends_on_hits and (state.released_at or state.limits_changed))
  )
  return has_earlier and queue.count_waiting(keys, state, call) > 0
end

-- Request ids are UUIDs, and replica ids are letters, digits, dots and dashes, so they need no escaping.
local function list(claims)
  return claims and #claims > 0 and '"' .. table.concat(claims, '","') .. '"' or ''
end

-- `granted` and `ended` have claims (lib/requests), those in `ended` with the reason after a `!`: a check has been
-- taken over, or withdrawn by a release.
function news.publish(keys, state, call)
  local used = room.used(state, call)
  wake.publish(keys.state, call, string.format(
    '{"at":%.0f,"number":%.0f,"millisToRoom":%.14g,"waiting":%.0f,"limits":"%s","approved":%s,"granted":[%s]%s}',
    call.now_ms,
    state.wake,
    room.micros_to(keys, state, call) / 1000,
    queue.count_waiting(keys, state, call),
    limits_text.format(state),
    type(used) == 'string' and '"' .. used .. '"' or digits(used),
    list(state.granted),
    state.ended and ',"ended":[' .. list(state.ended) .. ']' or ''
  ))
end

return news
