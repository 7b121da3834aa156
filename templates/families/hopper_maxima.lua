-- Score programs under which rows may keep their maximum: where no score is computed, and where it was raced and not slower.
return function(p)
  local score = p.score
  if not score or not (score.has_score or score.has_mask) then return true end
  if score.most or score.has_mask and score.has_score then return false end
  local of = score.has_score and #score.arrays == 1 and score.arrays[1]
  local of_distance = score.of_distance and score.adds == score.of_distance and p.d + p.dv <= 256
  return p.d + p.dv <= ((score.has_mask or score.slopes) and 256 or 128) or of_distance
    or of and (of.by_row and not of.wide or of.diagonal and score.adds == of.node)
end
