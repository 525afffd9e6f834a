-- The state's field `further`, and what it has in a state that was read. lib/further says what it means.

local further_fields = {}

-- Gives a state the further limits of a text (lib/limits-text), with windows that begin at `start` and have no approvals.
function further_fields.set(state, limits, start)
  state.further_text, state.further = limits.further_text, nil
  if limits.further then
    state.further = {}
    for i, limit in ipairs(limits.further) do
      state.further[i] = {
        name = limit.name, window = limit.window, max = limit.max, counts = limit.counts, keeps = limit.keeps,
        start = start, taken = 0,
      }
    end
  end
end

-- The field `further` (lib/further).
function further_fields.read(state, text)
  local starts, takens = {}, {}
  for name, start, taken in string.gmatch(text or '', '([^=,]+)=(%d+):(%d+)') do
    starts[name], takens[name] = tonumber(start), tonumber(taken)
  end
  for _, limit in ipairs(state.further or {}) do
    limit.start = starts[limit.name] or limit.start
    limit.taken = takens[limit.name] or 0
  end
end

function further_fields.format(state)
  if not state.further then
    return 0
  end
  local texts = {}
  for i, limit in ipairs(state.further) do
    texts[i] = string.format('%s=%.0f:%.0f', limit.name, limit.start, limit.taken)
  end
  return table.concat(texts, ',')
end

-- The same for limits that have no approvals any more. The windows stay, which tell when the key is removed.
function further_fields.format_unused(state)
  for _, limit in ipairs(state.further) do
    limit.taken = 0
  end
  return further_fields.format(state)
end

return further_fields
